package codec

import (
	"encoding/binary"
	"errors"

	"github.com/wcodec/wcodec/tensor"
)

// Auto is the name that lets Choose choose.
const Auto = "auto"

// chooseGain is what a code must save over one that comes before it in the registry, and so decodes faster: one part
// in so many.
const chooseGain = 100

// RepeatFinder is a Codec whose gain over the others comes from strings of bytes that come again, and whose Fit takes
// long to find that out. For floats, Choose asks it only where there are some.
type RepeatFinder interface {
	Codec
	FindsRepeats()
}

// Choose picks the code for a segment and fits it to a sample of it (see Codec.Fit). With the name "auto" or none the
// code with the smallest estimate wins, an earlier one of the registry where it is less than 1% larger. A code that is
// named is taken where it suits the sample. Where nothing suits, the code with the number Raw is the answer. The error
// wraps ErrUnknown where the registry has no such code. The result depends on the arguments alone.
func Choose(r *Registry, name string, unit tensor.DType, sample []byte, exact bool, level Level) (Codec, Coder, error) {
	raw, err := r.ByID(Raw)
	if err != nil {
		return nil, nil, err
	}
	best, coder := raw, Coder(nil)
	if coder, err = raw.Fit(unit, sample, exact, level); err != nil {
		return nil, nil, err
	}
	candidates := r.All()
	if name != "" && name != Auto {
		named, err := r.ByName(name)
		if err != nil {
			return nil, nil, err
		}
		candidates = []Codec{named}
	}
	_, float := unit.Float()
	for _, c := range candidates {
		if c.ID() == Raw {
			continue
		}
		if _, ok := c.(RepeatFinder); ok && float && len(candidates) > 1 && best.ID() != Raw && !repeats(sample) {
			continue
		}
		fitted, err := c.Fit(unit, sample, exact, level)
		if errors.Is(err, ErrUnsuitable) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		limit := coder.BitsPerUnit()
		if len(candidates) > 1 {
			limit -= limit / chooseGain
		}
		if fitted.BitsPerUnit() < limit {
			best, coder = c, fitted
		}
	}
	return best, coder, nil
}

const (
	repeatPieces = 4
	repeatPiece  = 8 << 10
	repeatSlots  = 1 << 10
)

// repeats reports whether strings of 8 bytes come again in the sample: at most four pieces of 8 KiB are looked at, and
// of their strings, at every offset, the one in 16 that its hash selects.
func repeats(sample []byte) bool {
	var seen [repeatSlots]uint64
	pieces, size := 1, len(sample)
	if size > repeatPieces*repeatPiece {
		pieces, size = repeatPieces, repeatPiece
	}
	looked, again := 0, 0
	for i := range pieces {
		at := 0
		if pieces > 1 {
			at = (len(sample) - size) / (pieces - 1) * i
		}
		for part := sample[at : at+size]; len(part) >= 8; part = part[1:] {
			v := binary.LittleEndian.Uint64(part)
			h := v * 0x9E3779B97F4A7C15
			if h>>60 != 0 {
				continue
			}
			looked++
			slot := &seen[h>>50&(repeatSlots-1)]
			if *slot == v {
				again++
			}
			*slot = v
		}
	}
	// Constant data may have no string that is selected, or all of them.
	return again*32 > looked || looked*64 < size
}
