package format

import (
	"encoding/binary"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// DigestState computes the digest of a tensor (FORMAT section "Tensor digest"): a hash over the checksums of its
// decoded chunks, so that it can be made from chunks that were decoded in any order, and does not depend on the codes.
type DigestState struct{ h xxh3.Hasher }

// NewDigest returns a DigestState that has seen no chunk.
func NewDigest() *DigestState { return new(DigestState) }

// Add appends the checksum of the decoded bytes of the next chunk.
func (d *DigestState) Add(decoded uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], decoded)
	d.h.Write(b[:]) // never fails
}

// Sum returns the digest of a tensor of length bytes and geometry g with the chunks added so far. It may be called once.
func (d *DigestState) Sum(length uint64, g tensor.Geometry) (sum [16]byte) {
	for _, v := range []uint64{length, uint64(g.UnitSize), g.Cols, uint64(g.TileRows), uint64(g.ChunkElems), g.SegElems} {
		d.Add(v)
	}
	s := d.h.Sum128()
	binary.LittleEndian.PutUint64(sum[:], s.Lo)
	binary.LittleEndian.PutUint64(sum[8:], s.Hi)
	return sum
}
