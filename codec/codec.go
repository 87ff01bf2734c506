// Package codec is the contract between the codes and whoever drives them, the registry that finds a code by its
// number, and the choice of a code for a segment. It knows no particular code and no file.
package codec

import (
	"errors"
	"fmt"

	"github.com/wcodec/wcodec/tensor"
)

// Slack is how many bytes beyond the end of a stored chunk a decoder may read (never use) where the capacity of the
// slice allows it. A Src with less capacity is copied first, so callers that can afford slack decode faster.
const Slack = 512

// Errors of this package. Codes wrap ErrCorrupt with the fact that did not hold.
var (
	// ErrCorrupt says that stored bytes cannot have come from an encoder.
	ErrCorrupt = errors.New("corrupt data")
	// ErrUnknown says that a code's number is in no registry.
	ErrUnknown = errors.New("unknown code")
	// ErrUnsuitable is Fit's answer for units or samples that the code cannot shrink.
	ErrUnsuitable = errors.New("code does not suit the data")
)

// ID is the number of a code in the file.
type ID uint8

// The numbers given out so far. A number is never used again for another layout.
const (
	Raw  ID = 0
	Zstd ID = 1
	Rans ID = 2
)

// Level is the trade between speed and size that a user asks for.
type Level int

// Levels. Default is the zero value.
const (
	Default Level = iota
	Fast
	Dense
)

// Codec is one code. Its methods are safe for concurrent use and keep no state between calls.
type Codec interface {
	ID() ID
	Name() string

	// Fit derives the parameters of a segment from a sample of it: whole chunks' worth of consecutive units, in order,
	// gathered at positions that depend on the segment's geometry alone. exact says that the sample is the whole
	// segment. It returns ErrUnsuitable where the code has nothing to offer. The result depends on the arguments alone.
	Fit(unit tensor.DType, sample []byte, exact bool, level Level) (Coder, error)

	// Parse reads the parameters that AppendTable wrote. All of table must be used. Every error wraps ErrCorrupt.
	Parse(unit tensor.DType, table []byte) (Coder, error)
}

// Coder codes the chunks of one segment. It is immutable and safe for concurrent use.
type Coder interface {
	// AppendTable appends the parameters in their canonical form.
	AppendTable(dst []byte) []byte

	// BitsPerUnit estimates the stored size from the sample that Fit saw. It is not used after Parse.
	BitsPerUnit() float64

	// EncodeChunk appends the coded form of the units in src to dst. Where that would not be smaller than src itself
	// it may return ErrUnsuitable, with dst unchanged; the caller then stores src as it is.
	EncodeChunk(dst, src []byte, s *Scratch) ([]byte, error)

	// DecodeChunks decodes every job, setting its Err; errors wrap ErrCorrupt. It may read Slack bytes beyond Src. It
	// writes exactly the bytes of Dst, whose length is the decoded length.
	DecodeChunks(jobs []Job, s *Scratch)
}

// Job is one chunk to decode.
type Job struct {
	Dst, Src []byte
	Err      error
}

// Scratch holds buffers that a worker reuses between calls. The zero value is ready. One goroutine uses it at a time.
type Scratch struct {
	bufs [4][]byte
	// Private is for what a code wants to keep between calls, such as a zstd decoder, keyed by the code's number.
	Private [8]any
}

// Bytes returns buffer i of the scratch with length n and at least Slack bytes of capacity beyond it. Its content is
// arbitrary.
func (s *Scratch) Bytes(i, n int) []byte {
	if cap(s.bufs[i]) < n+Slack {
		s.bufs[i] = make([]byte, n+Slack)
	}
	return s.bufs[i][:n]
}

// Registry finds codes by number and by name.
type Registry struct {
	byID  map[ID]Codec
	order []Codec
}

// NewRegistry returns a registry of the given codes, in order of preference at equal cost.
func NewRegistry(codecs ...Codec) *Registry {
	r := &Registry{byID: make(map[ID]Codec), order: codecs}
	for _, c := range codecs {
		r.byID[c.ID()] = c
	}
	return r
}

// All returns the codes in the order given to NewRegistry.
func (r *Registry) All() []Codec { return r.order }

// ByID returns the code with the number id, or an error that wraps ErrUnknown.
func (r *Registry) ByID(id ID) (Codec, error) {
	if c := r.byID[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("code %d: %w", id, ErrUnknown)
}

// ByName returns the code called name, or an error that wraps ErrUnknown.
func (r *Registry) ByName(name string) (Codec, error) {
	for _, c := range r.order {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("code %q: %w", name, ErrUnknown)
}
