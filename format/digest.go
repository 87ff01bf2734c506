package format

import (
	"encoding/binary"
	"slices"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// DigestState computes the digest of a tensor (FORMAT section "Tensor digest"): a hash over the checksums of its
// decoded chunks, so that it can be made from chunks that were decoded in any order, and does not depend on the codes.
// It stays small while the tensor is small, for a writer holds one for each tensor.
type DigestState struct {
	b []byte
	h *xxh3.Hasher // nil until b was full
}

// NewDigest returns a DigestState that has seen no chunk.
func NewDigest() *DigestState { return new(DigestState) }

// Add appends the checksum of the decoded bytes of the next chunk.
func (d *DigestState) Add(decoded uint64) {
	if len(d.b) == 1024 {
		if d.h == nil {
			d.h = xxh3.New()
		}
		d.h.Write(d.b) // never fails
		d.b = d.b[:0]
	}
	d.b = binary.LittleEndian.AppendUint64(d.b, decoded)
}

// Sum returns the digest of a tensor of length bytes and geometry g with the chunks added so far.
func (d *DigestState) Sum(length uint64, g tensor.Geometry) (sum [16]byte) {
	b := slices.Clone(d.b)
	for _, v := range []uint64{length, uint64(g.UnitSize), g.Cols, uint64(g.TileRows), uint64(g.ChunkElems), g.SegElems} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	s := xxh3.Hash128(b)
	if d.h != nil {
		h := *d.h
		h.Write(b)
		s = h.Sum128()
	}
	binary.LittleEndian.PutUint64(sum[:], s.Lo)
	binary.LittleEndian.PutUint64(sum[8:], s.Hi)
	return sum
}
