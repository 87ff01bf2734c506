package rans

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// testTables makes both tables of a frequency list that sums to 4096.
func testTables(freqs map[byte]uint16) (dec *[4096]uint32, enc *encTable) {
	dec, enc = new([4096]uint32), new(encTable)
	start := 0
	for s := 0; s < 256; s++ {
		f := int(freqs[byte(s)])
		if f == 0 {
			continue
		}
		enc.set(byte(s), uint16(f), uint16(start))
		for i := 0; i < f; i++ {
			dec[start+i] = uint32(s) | uint32(i)<<8 | uint32(f)<<20
		}
		start += f
	}
	return dec, enc
}

// decodeSymbols decodes m symbols from the words in src.
func decodeSymbols(dst, src []byte, states *[32]uint32, table *[4096]uint32, m int) (used int, ok bool) {
	s := stream{dst: dst[:m], src: src, states: *states}
	decodeStream(&s, table)
	*states = s.states
	return s.at, s.ok
}

// refEncode codes symbols as FORMAT says it, one division a symbol.
func refEncode(syms []byte, states *[32]uint32, enc *encTable) []byte {
	var words []uint16
	for i := (len(syms) + 127) / 128 * 128; i >= 0; i -= 128 {
		for j := 3; j >= 0; j-- {
			for l := 31; l >= 0; l-- {
				k := i + 4*l + j
				if k >= len(syms) {
					continue
				}
				f, c := uint64(enc.entries[syms[k]].freq), uint64(enc.entries[syms[k]].start)
				x := uint64(states[l])
				if x >= f<<20 {
					words = append(words, uint16(x))
					x >>= 16
				}
				states[l] = uint32(x/f<<12 + x%f + c)
			}
		}
	}
	var b []byte
	for i := len(words) - 1; i >= 0; i-- {
		b = binary.LittleEndian.AppendUint16(b, words[i])
	}
	return b
}

func TestSymbolsAgainstReference(t *testing.T) {
	for _, freqs := range []map[byte]uint16{
		{0: 4095, 255: 1},
		{0: 1, 255: 4095},
		{7: 2048, 8: 2048},
		{1: 1, 2: 2, 3: 3, 4: 1000, 100: 3090},
		{10: 2047, 20: 1023, 30: 511, 40: 255, 50: 127, 60: 63, 70: 31, 80: 39},
	} {
		dec, enc := testTables(freqs)
		var alphabet []byte
		for s := 0; s < 256; s++ {
			for range freqs[byte(s)] {
				alphabet = append(alphabet, byte(s))
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for _, m := range []int{0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, 16384} {
			syms := make([]byte, m)
			for i := range syms {
				syms[i] = alphabet[r.IntN(len(alphabet))]
			}
			var first [32]uint32
			for l := range first {
				first[l] = 1<<16 + r.Uint32()>>16
			}
			want, got := first, first
			words := refEncode(syms, &want, enc)
			buf := make([]byte, 2*m+1)
			start, ok := encodeSymbols(buf, syms, &got, enc)
			if !ok || !bytes.Equal(buf[start:], words) || got != want {
				t.Fatalf("m=%d: encoder differs from the reference (ok=%v, %d bytes, want %d)", m, ok, len(buf)-start, len(words))
			}
			out := bytes.Repeat([]byte{0xa5}, m+1)
			used, ok := decodeSymbols(out, words, &got, dec, m)
			if !ok || used != len(words) || !bytes.Equal(out[:m], syms) || got != first || out[m] != 0xa5 {
				t.Fatalf("m=%d: decode: ok=%v used=%d of %d", m, ok, used, len(words))
			}
			if len(words) > 0 {
				got = want
				if _, ok := decodeSymbols(out, words[:len(words)-1], &got, dec, m); ok {
					t.Fatalf("m=%d: decoder did not miss the last word", m)
				}
				got = first
				if _, ok := encodeSymbols(buf[:len(words)-1], syms, &got, enc); ok {
					t.Fatalf("m=%d: encoder wrote more than fits", m)
				}
			}
		}
		got := [32]uint32{}
		if _, ok := encodeSymbols(make([]byte, 1000), []byte{200}, &got, enc); ok {
			t.Fatal("a symbol without frequency was coded")
		}
	}
}

// The reciprocal must be exact at both ends of the range of every quotient.
func TestReciprocal(t *testing.T) {
	for f := uint64(1); f < 4096; f++ {
		rcp := (1<<44 + f - 1) / f
		limit := f << 20
		check := func(x uint64) {
			if x < limit && x*rcp>>44 != x/f {
				t.Fatalf("%d / %d", x, f)
			}
		}
		for q := uint64(0); q < 1<<20; q += 1 + q/7 {
			check(q * f)
			check(q*f + f - 1)
		}
		check(limit - 1)
		check(limit - f)
		check(limit - f - 1)
	}
}

func TestSplitMergeBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 2, 4, 6, 8, 10, 62, 64, 66, 128, 130, 1000, 2048} {
		for _, base := range []uint8{0, 1, 7, 112, 239, 240} {
			src := make([]byte, 2*n)
			for i := 0; i < n; i++ {
				e := uint16(base) + uint16(r.IntN(16))
				if r.IntN(20) == 0 {
					e = uint16(r.IntN(256))
				}
				binary.LittleEndian.PutUint16(src[2*i:], uint16(r.IntN(2))<<15|e<<7|uint16(r.IntN(128)))
			}
			syms, sm := make([]byte, n/2), make([]byte, n)
			outside := make([]uint64, (n+63)/64)
			for i := range outside {
				outside[i] = r.Uint64()
			}
			any := splitBF16(syms, sm, src, base, outside)
			dst := make([]byte, 2*n)
			mergeBF16(dst, syms, sm, base)
			want := false
			for i := 0; i < n; i++ {
				u, v := binary.LittleEndian.Uint16(src[2*i:]), binary.LittleEndian.Uint16(dst[2*i:])
				out := int(u>>7&255) < int(base) || int(u>>7&255) > int(base)+15
				want = want || out
				if out != (outside[i/64]>>(i%64)&1 == 1) {
					t.Fatalf("n=%d base=%d: unit %d misjudged", n, base, i)
				}
				if !out && u != v {
					t.Fatalf("n=%d base=%d: unit %d: %04x became %04x", n, base, i, u, v)
				}
				if sm[i] != byte(u>>8&0x80|u&0x7f) {
					t.Fatalf("raw byte %d", i)
				}
				idx := byte(u>>7) - base
				if syms[i/2]>>(4*(i%2))&15 != idx&15 {
					t.Fatalf("index %d", i)
				}
			}
			if any != want {
				t.Fatal("any")
			}
			if rem := n % 64; rem > 0 && outside[n/64]>>rem != 0 {
				t.Fatal("bits beyond the last unit")
			}
		}
	}
}

func TestAbsentSymbols(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, m := range []int{0, 1, 63, 64, 65, 127, 500} {
		var present [32]byte
		for i := range present {
			present[i] = byte(r.Uint32() | r.Uint32() | r.Uint32())
		}
		syms := make([]byte, m)
		for i := range syms {
			syms[i] = byte(r.Uint32())
		}
		absent := make([]uint64, (m+63)/64)
		for i := range absent {
			absent[i] = r.Uint64()
		}
		any, want := absentSymbols(absent, syms, &present), false
		for i := 0; i < len(absent)*64; i++ {
			gone := i < m && present[syms[i]/8]>>(syms[i]%8)&1 == 0
			want = want || gone
			if gone != (absent[i/64]>>(i%64)&1 == 1) {
				t.Fatalf("symbol %d of %d misjudged", i, m)
			}
		}
		if any != want {
			t.Fatal("any")
		}
	}
}

func benchFreqs() (*[4096]uint32, *encTable, []byte) {
	freqs := map[byte]uint16{}
	left := 4096
	for s := 0; s < 60; s++ {
		f := left / 12
		freqs[byte(s*4)] = uint16(f)
		left -= f
	}
	freqs[255] = uint16(left)
	dec, enc := testTables(freqs)
	r := rand.New(rand.NewPCG(7, 8))
	syms := make([]byte, 1<<20) // so many that branches are not learned by heart
	for i := range syms {
		syms[i] = byte(dec[r.IntN(4096)])
	}
	return dec, enc, syms
}

// The two benchmarks below count the bytes of the BF16 units that the pair symbols stand for.

func BenchmarkDecodeSymbols(b *testing.B) {
	dec, enc, syms := benchFreqs()
	var first [32]uint32
	for l := range first {
		first[l] = 1 << 16
	}
	buf := make([]byte, 2*len(syms))
	start, _ := encodeSymbols(buf, syms, &first, enc)
	b.SetBytes(4 * int64(len(syms)))
	for b.Loop() {
		states := first
		decodeSymbols(syms, buf[start:], &states, dec, len(syms))
	}
}

func BenchmarkEncodeSymbols(b *testing.B) {
	_, enc, syms := benchFreqs()
	buf := make([]byte, 2*len(syms))
	b.SetBytes(4 * int64(len(syms)))
	for b.Loop() {
		var states [32]uint32
		for l := range states {
			states[l] = 1 << 16
		}
		encodeSymbols(buf, syms, &states, enc)
	}
}
