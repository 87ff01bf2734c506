// Package hostile makes input that must be refused with the right error, or survived, and input that looks wrong and
// must be accepted. Tests of every layer run over the same cases. It knows formats as bytes only and imports none of
// the packages it is meant to test.
package hostile

import "encoding/binary"

// Want is what a reader must say to a case.
type Want int

// The verdicts. Truncated, TooLarge and Trailing are kinds of Invalid.
const (
	Accept    Want = iota
	Invalid        // it cannot be what it claims to be
	Truncated      // the file ends too soon
	TooLarge       // a count is beyond its cap
	Trailing       // bytes follow the end
)

func (w Want) String() string {
	return [...]string{"accept", "invalid", "truncated", "toolarge", "trailing"}[w]
}

// Case is one input.
type Case struct {
	Name string // unique within its list, fit for a file name
	Want Want
	// Data makes the whole file. Big ones are made anew at every call.
	Data func() []byte
	// Big says that the file is of several megabytes, too many to keep.
	Big bool
	// Differs is why the verdict is not that of the format's reference implementation; empty where it is.
	Differs string
}

// Frame puts the length of a safetensors header before its JSON, and data behind it.
func Frame(json, data string) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(json)+len(data)), uint64(len(json)))
	return append(append(b, json...), data...)
}
