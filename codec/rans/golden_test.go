package rans

import (
	"math/bits"
	"testing"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// geometric makes n units whose fields come from integers alone: mantissas of noise with a
// highest bit that is rarely set, exponents that fall off on both sides of the middle.
func geometric(unit tensor.DType, n int) []byte {
	f, float := unit.Float()
	size := unitSize(unit)
	b := make([]byte, 0, n*size)
	x := uint64(0x9E3779B97F4A7C15)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		r := x * 0xBF58476D1CE4E5B9
		down, up := bits.TrailingZeros64(r|1<<20), bits.TrailingZeros64(r>>32|1<<6)
		u := uint64(64+up-down) & 0xff
		if float {
			e := uint64(1<<(f.Exp-1)-1+up/2-down) & (1<<f.Exp - 1)
			m := r >> 10 & (1<<f.Mant - 1) &^ (r >> 61 & 1 << (f.Mant - 1))
			u = r>>63<<(f.Exp+f.Mant) | e<<f.Mant | m
		}
		for k := range size {
			b = append(b, byte(u>>(8*k)))
		}
	}
	return b
}

// The same input gives the same bytes: on every platform, on every route, and in every version of this code. A change
// of these numbers is a change of what writers write; where Parse and DecodeChunks still read the old bytes, that is
// allowed, and the new numbers belong here.
func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		unit          tensor.DType
		level         codec.Level
		exact         bool
		table, stored uint64
	}{
		{tensor.BF16, codec.Default, true, 0xce385c964a120e75, 0xcfb287ffe56b6d1c},
		{tensor.BF16, codec.Default, false, 0x3a431ec6dc5b4f99, 0xdb917e43c808b71c},
		{tensor.BF16, codec.Dense, true, 0xfc2bb8e98c157667, 0xb878711808c917ee},
		{tensor.F16, codec.Default, true, 0x5845d933642366a0, 0x1ea2156172303d15},
		{tensor.F32, codec.Default, false, 0x947e6b80e4a3216d, 0xf45277a40ef6d7ff},
		{tensor.F64, codec.Dense, true, 0x6229a8934250da90, 0xa814f8e076049a62},
		{tensor.F8E4M3, codec.Fast, true, 0x97fc0e0eb87e07f2, 0x255e562a8bf0fdd8},
		{tensor.F8E5M2, codec.Default, true, 0x809cd4c7a958c3fc, 0xbfa0ff40dfcb7884},
		{tensor.U8, codec.Default, true, 0x3e122d3a59c054bf, 0xd6eecef6a8ee50e1},
		{tensor.I32, codec.Default, false, 0x8a080463edb28715, 0x45105238987f38e7},
	} {
		data := geometric(tc.unit, 20001)
		c, err := New().Fit(tc.unit, data, tc.exact, tc.level)
		if err != nil {
			t.Fatal(tc.unit, err)
		}
		out, err := c.EncodeChunk(nil, data, new(codec.Scratch))
		if err != nil {
			t.Fatal(tc.unit, err)
		}
		table, stored := checksum.Sum64(c.AppendTable(nil)), checksum.Sum64(out)
		if table != tc.table || stored != tc.stored {
			t.Errorf("%s, level %d, exact %v: table %#x, chunk %#x", tc.unit, tc.level, tc.exact, table, stored)
		}
	}
}
