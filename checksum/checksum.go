// Package checksum is the chunk checksum of FORMAT section "Chunk checksum": 64 bits over a run of bytes, made so that
// a GPU warp, a vector unit and plain Go all compute it at little more than the cost of reading the bytes. It finds
// every flipped bit and every pair of flipped bits that stand in one column; anything else escapes with probability
// 2^-32 at worst. It is not cryptographic. It knows nothing of chunks or files.
//
// The bytes, padded with zeros, are rows of 512 bytes; a row is 128 little-endian 32-bit words. Column c of 128 sums
//
//	A[c] = sum over rows g of word[g][c] * Key(g)   (mod 2^64)
//
// and the checksum is mix(n + sum over c of mix(A[c] + (c+1)*phi)), n being the length in bytes.
package checksum

import "encoding/binary"

const (
	rowBytes = 512
	columns  = rowBytes / 4
	// MaxBytes is the longest input: keys are distinct for so many rows.
	MaxBytes = 1 << 20
	maxRows  = MaxBytes / rowBytes
	phi      = 0x9E3779B97F4A7C15
)

// keys holds Key(g) for every row, widened for vector multiplies.
var keys = func() (k [maxRows]uint64) {
	for g := range k {
		k[g] = uint64(Key(uint32(g)))
	}
	return k
}()

// Key is the odd 32-bit multiplier of row g.
func Key(g uint32) uint32 {
	x := (g + 1) * 0x9E3779B1
	x = (x ^ x>>16) * 0x85EBCA6B
	x = (x ^ x>>13) * 0xC2B2AE35
	return x ^ x>>16 | 1
}

func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xE9846AF9B1A615D
	x ^= x >> 32
	x *= 0xE9846AF9B1A615D
	return x ^ x>>28
}

// Sum64 returns the checksum of b, which is at most MaxBytes long; it panics beyond.
func Sum64(b []byte) uint64 {
	if len(b) > MaxBytes {
		panic("checksum: input longer than MaxBytes")
	}
	var acc [columns]uint64
	full := len(b) / rowBytes
	if full > 0 {
		accumulate(&acc, b[:full*rowBytes])
	}
	if rest := b[full*rowBytes:]; len(rest) > 0 {
		var row [rowBytes]byte
		copy(row[:], rest)
		accumulateRow(&acc, row[:], keys[full])
	}
	return finish(&acc, len(b))
}

func finish(acc *[columns]uint64, n int) uint64 {
	h := uint64(n)
	for c, a := range acc {
		h += mix(a + uint64(c+1)*phi)
	}
	return mix(h)
}

func accumulateGeneric(acc *[columns]uint64, b []byte) {
	for g := 0; len(b) > 0; g++ {
		accumulateRow(acc, b[:rowBytes], keys[g])
		b = b[rowBytes:]
	}
}

func accumulateRow(acc *[columns]uint64, row []byte, key uint64) {
	row = row[:rowBytes]
	for c := range acc {
		acc[c] += uint64(binary.LittleEndian.Uint32(row[4*c:])) * key
	}
}
