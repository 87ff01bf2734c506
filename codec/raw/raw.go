// Package raw is the code `raw` of FORMAT section "Codes": chunks stored as they are. It is what nothing else shrinks,
// and it keeps the promise that data never expands. It knows nothing of units.
package raw

import (
	"fmt"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// New returns the code. It suits every unit.
func New() codec.Codec { return code{} }

type code struct{}

func (code) ID() codec.ID { return codec.Raw }
func (code) Name() string { return "raw" }

// Fit never fails: raw suits everything.
func (code) Fit(unit tensor.DType, _ []byte, _ bool, _ codec.Level) (codec.Coder, error) {
	return newCoder(unit), nil
}

// Parse accepts the empty table only.
func (code) Parse(unit tensor.DType, table []byte) (codec.Coder, error) {
	if len(table) != 0 {
		return nil, fmt.Errorf("raw: table of %d bytes where none belongs: %w", len(table), codec.ErrCorrupt)
	}
	return newCoder(unit), nil
}

// coder is the number of bits of a unit.
type coder float64

func newCoder(unit tensor.DType) coder {
	if b := unit.Bits(); b > 0 {
		return coder(b)
	}
	return 8
}

func (c coder) AppendTable(dst []byte) []byte { return dst }

func (c coder) BitsPerUnit() float64 { return float64(c) }

func (c coder) EncodeChunk(dst, src []byte, _ *codec.Scratch) ([]byte, error) {
	return append(dst, src...), nil
}

func (c coder) DecodeChunks(jobs []codec.Job, _ *codec.Scratch) {
	for i := range jobs {
		j := &jobs[i]
		j.Err = nil
		if len(j.Src) != len(j.Dst) {
			j.Err = fmt.Errorf("raw: %d bytes stored for a chunk of %d: %w", len(j.Src), len(j.Dst), codec.ErrCorrupt)
			continue
		}
		copy(j.Dst, j.Src)
	}
}
