//go:build amd64 && !noasm

package rans

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"
)

var routes = [...]string{routeGeneric: "generic", routeAVX2: "avx2", routeAVX512: "avx512"}

// eachRoute calls f with every route that this machine can take in force.
func eachRoute(f func(name string)) {
	was := best
	defer func() { best = was }()
	for r := routeGeneric; r <= detect(); r++ {
		best = r
		f(routes[r])
	}
}

// The offsets in _generate/common.go.
func TestStreamOffsets(t *testing.T) {
	var s stream
	for name, at := range map[string][2]uintptr{
		"dst":    {unsafe.Offsetof(s.dst), 0},
		"src":    {unsafe.Offsetof(s.src), 24},
		"at":     {unsafe.Offsetof(s.at), 48},
		"limit":  {unsafe.Offsetof(s.limit), 56},
		"absent": {unsafe.Offsetof(s.absent), 64},
		"states": {unsafe.Offsetof(s.states), 72},
		"ahead":  {unsafe.Offsetof(s.ahead), 200},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, the kernels have it at %d", name, at[0], at[1])
		}
	}
	var e encEntry
	if unsafe.Sizeof(e) != 16 || unsafe.Offsetof(e.freq) != 8 || unsafe.Offsetof(e.start) != 10 {
		t.Error("the AVX2 encoder has another encEntry")
	}
}

// fenced returns n bytes whose capacity extends slack bytes beyond them and ends at memory that must not be touched.
func fenced(t testing.TB, n, slack int) []byte {
	b := fence(t, n+slack, false)
	return b[: n : n+slack]
}

// testFreqs makes frequencies of one of several shapes.
func testFreqs(r *rand.Rand) map[byte]uint16 {
	switch r.IntN(4) {
	case 0:
		return map[byte]uint16{byte(r.IntN(128)): 4095, byte(128 + r.IntN(128)): 1}
	case 1: // all present, uneven
		f, left := map[byte]uint16{}, 4096-256
		for s := range 256 {
			v := r.IntN(left/20 + 1)
			f[byte(s)] = uint16(1 + v)
			left -= v
		}
		f[byte(r.IntN(256))] += uint16(left)
		return f
	case 2:
		f := map[byte]uint16{}
		for s := range 256 {
			f[byte(s)] = 16
		}
		return f
	default:
		f, left := map[byte]uint16{}, 4096
		for left > 0 {
			v := 1 + r.IntN((left+1)/2)
			f[byte(r.IntN(256))] += uint16(v)
			left -= v
		}
		if len(f) == 1 {
			return map[byte]uint16{3: 2048, 200: 2048}
		}
		return f
	}
}

// checkDecode decodes words of any origin on every route, alone and beside another stream, and compares with the generic
// loop. src lies before memory that must not be touched, slack bytes away; dst has no room to spare.
func checkDecode(t *testing.T, table *[4096]uint32, words []byte, states *[32]uint32, m, slack int, other *stream) {
	want, wantStates := make([]byte, m), *states
	wantUsed, wantOK := decodeSymbolsGeneric(want, words, &wantStates, table, m)
	src, dst := fenced(t, len(words), slack), fenced(t, m, 0)
	copy(src, words)
	check := func(route string, s *stream) {
		t.Helper()
		if s.ok != wantOK {
			t.Fatalf("%s: m=%d, %d bytes of words, slack %d: ok=%v, want %v", route, m, len(words), slack, s.ok, wantOK)
		}
		if s.ok && (s.at != wantUsed || s.states != wantStates || !bytes.Equal(dst, want)) {
			t.Fatalf("%s: m=%d: used %d, want %d; or states or symbols differ", route, m, s.at, wantUsed)
		}
	}
	eachRoute(func(route string) {
		s := &stream{dst: dst, src: src, states: *states, at: 77}
		clear(dst)
		decodeStream(s, table)
		check(route, s)
		for turn := range 2 {
			s, o := &stream{dst: dst, src: src, states: *states}, *other
			clear(dst)
			if turn == 0 {
				decodeStreams(s, &o, table)
			} else {
				decodeStreams(&o, s, table)
			}
			check(route, s)
		}
	})
}

func TestDecodeRoutes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, m := range []int{0, 1, 127, 128, 129, 256, 300, 1024, 4000, 16384} {
		for range 4 {
			dec, enc := testTables(testFreqs(r))
			block := func(m int) (words []byte, states [32]uint32) {
				syms := make([]byte, m)
				for i := range syms {
					syms[i] = byte(dec[r.IntN(4096)])
				}
				for l := range states {
					states[l] = lowerBound + r.Uint32()>>16
				}
				buf := make([]byte, 2*m)
				start, ok := encodeSymbolsGeneric(buf, syms, &states, enc)
				if !ok {
					t.Fatal("generic encoder")
				}
				return buf[start:], states
			}
			words, states := block(m)
			w2, st2 := block(r.IntN(2000))
			other := &stream{dst: make([]byte, 1500), src: w2, states: st2}
			for _, slack := range []int{0, 100, 256, 512} {
				checkDecode(t, dec, words, &states, m, slack, other)
				for _, cut := range []int{1, 2, 3, 100, 255, 256, 300, len(words) / 2} {
					if cut <= len(words) {
						checkDecode(t, dec, words[:len(words)-cut], &states, m, slack, other)
					}
				}
				checkDecode(t, dec, append(bytes.Clone(words), 1, 2, 3), &states, m, slack, other)
			}
		}
	}
}

// A table without frequencies, which no parser makes, takes a word for every symbol: as many as a group can take.
func TestDecodeMostWords(t *testing.T) {
	var table [4096]uint32
	for i := range table {
		table[i] = uint32(i)
	}
	words := make([]byte, 2*128*40)
	for i := range words {
		words[i] = byte(i * 37)
	}
	var states [32]uint32
	other := &stream{dst: make([]byte, 4000), src: words}
	for _, m := range []int{128, 256, 5000} {
		for cut := 0; cut <= 520; cut += 4 {
			for _, slack := range []int{0, 224, 254, 256, 512} {
				checkDecode(t, &table, words[:2*m-min(cut, m)], &states, m, slack, other)
			}
		}
	}
}

func FuzzDecodeRoutes(f *testing.F) {
	f.Add(uint64(1), []byte("some words that mean nothing"), uint16(300), uint8(0))
	f.Add(uint64(2), bytes.Repeat([]byte{0, 0, 255}, 500), uint16(1000), uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, words []byte, m uint16, slack uint8) {
		r := rand.New(rand.NewPCG(seed, 3))
		table, _ := testTables(testFreqs(r))
		if seed%5 == 0 {
			for i := range table {
				table[i] = r.Uint32()
			}
		}
		var states [32]uint32
		for l := range states {
			states[l] = r.Uint32() >> r.IntN(32)
		}
		other := &stream{dst: make([]byte, r.IntN(1000)), src: words[len(words)/2:], states: states}
		checkDecode(t, table, words, &states, int(m%5000), 2*int(slack), other)
	})
}

// checkEncode codes symbols on every route into room bytes, which lie behind memory that must not be touched, and
// compares with the generic loop.
func checkEncode(t *testing.T, enc *encTable, symbols []byte, states *[32]uint32, room int) {
	want, wantStates := make([]byte, room), *states
	wantStart, wantOK := encodeSymbolsGeneric(want, symbols, &wantStates, enc)
	dst, syms := fence(t, room, true), fenced(t, len(symbols), 0)
	copy(syms, symbols)
	eachRoute(func(route string) {
		got := *states
		clear(dst)
		start, ok := encodeSymbols(dst, syms, &got, enc)
		if ok != wantOK {
			t.Fatalf("%s: %d symbols, room %d: ok=%v, want %v", route, len(syms), room, ok, wantOK)
		}
		if ok && (start != wantStart || got != wantStates || !bytes.Equal(dst[start:], want[start:])) {
			t.Fatalf("%s: %d symbols, room %d: start %d, want %d; or states or words differ", route, len(syms), room, start, wantStart)
		}
	})
}

func TestEncodeRoutes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, m := range []int{0, 1, 127, 128, 129, 256, 300, 1024, 4000, 16384} {
		for range 8 {
			dec, enc := testTables(testFreqs(r))
			syms := make([]byte, m)
			for i := range syms {
				syms[i] = byte(dec[r.IntN(4096)])
			}
			var states [32]uint32
			for l := range states {
				states[l] = lowerBound + r.Uint32()>>16
			}
			full := make([]byte, 2*m)
			final := states
			start, _ := encodeSymbolsGeneric(full, syms, &final, enc)
			size := len(full) - start
			for _, room := range []int{2*m + 999, size + 257, size + 1, size, size - 1, size / 2, 0} {
				if room >= 0 {
					checkEncode(t, enc, syms, &states, room)
				}
			}
			if m > 0 {
				missing := testFreqs(r)
				delete(missing, syms[r.IntN(m)])
				_, enc := testTables(missing)
				checkEncode(t, enc, syms, &states, 2*m)
			}
		}
	}
}

// The largest states and the rarest symbols make three words a lane in the first group, which is all that there can be.
func TestEncodeMostWords(t *testing.T) {
	_, enc := testTables(map[byte]uint16{0: 1, 1: 4095})
	var states [32]uint32
	for l := range states {
		states[l] = 1<<32 - 1
	}
	for _, m := range []int{100, 128, 256, 1000} {
		syms := make([]byte, m)
		for room := range 600 {
			checkEncode(t, enc, syms, &states, room)
		}
	}
}

// Every quotient that a state and a frequency can make, where rounding is most likely to go wrong.
func TestEncodeQuotients(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	syms := make([]byte, 128)
	for f := 1; f < 4096; f++ {
		_, enc := testTables(map[byte]uint16{0: uint16(f), 1: uint16(4096 - f)})
		var states [32]uint32
		for range 8 {
			for l := range states {
				// Near a multiple of f, just below f << 20 half the time; four symbols of frequency f need four shifts or none.
				q := uint32(1<<20 - 1 - l)
				if l%2 == 0 {
					q = r.Uint32N(1 << 20)
				}
				states[l] = q*uint32(f) + [3]uint32{0, uint32(f) - 1, r.Uint32N(uint32(f))}[r.IntN(3)]
			}
			want, final := make([]byte, 256), states
			start, ok := encodeSymbolsGeneric(want, syms, &final, enc)
			if !ok {
				t.Fatal("generic encoder")
			}
			was := best
			for best = routeAVX2; best <= detect(); best++ {
				got, dst := states, make([]byte, 256)
				if s, ok := encodeSymbols(dst, syms, &got, enc); !ok || s != start || got != final || !bytes.Equal(dst[s:], want[s:]) {
					best = was
					t.Fatalf("f=%d: %s differs", f, routes[best])
				}
			}
			best = was
		}
	}
}

func FuzzEncodeRoutes(f *testing.F) {
	f.Add(uint64(1), []byte("symbols"), uint16(300), uint16(2000))
	f.Add(uint64(4), bytes.Repeat([]byte{1, 2, 3}, 500), uint16(1), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, symbols []byte, m, room uint16) {
		r := rand.New(rand.NewPCG(seed, 3))
		freqs := testFreqs(r)
		dec, enc := testTables(freqs)
		if seed%4 != 0 { // symbols that can be coded, as many as m says
			symbols = append(symbols, make([]byte, m%4000)...)
			for i, s := range symbols {
				if freqs[s] == 0 {
					symbols[i] = byte(dec[r.IntN(4096)])
				}
			}
		}
		var states [32]uint32
		for l := range states {
			states[l] = r.Uint32() >> r.IntN(32)
		}
		checkEncode(t, enc, symbols, &states, int(room%10000))
	})
}

// checkBF16 splits units on every route, merges them again, and compares both with the generic loops.
func checkBF16(t *testing.T, units []byte, base uint8, present *[32]byte) {
	n := len(units) / 2 &^ 1
	words := (n + 63) / 64
	wantSyms, wantSM, wantOut := make([]byte, n/2), make([]byte, n), make([]uint64, words)
	wantAny := splitBF16Generic(wantSyms, wantSM, units, base, wantOut)
	wantUnits := make([]byte, 2*n)
	mergeBF16Generic(wantUnits, wantSyms, wantSM, base)
	wantAbsent := make([]uint64, (n/2+63)/64)
	wantGone := absentSymbolsGeneric(wantAbsent, wantSyms, present)

	src, syms, sm := fenced(t, 2*n, 0), fenced(t, n/2, 0), fenced(t, n, 0)
	copy(src, units)
	eachRoute(func(route string) {
		out, absent := make([]uint64, words), make([]uint64, len(wantAbsent))
		for i := range out {
			out[i] = ^uint64(0)
		}
		for i := range absent {
			absent[i] = ^uint64(0)
		}
		clear(syms)
		clear(sm)
		if any := splitBF16(syms, sm, src, base, out); any != wantAny || !bytes.Equal(syms, wantSyms) ||
			!bytes.Equal(sm, wantSM) || !equalWords(out, wantOut) {
			t.Fatalf("%s: n=%d base=%d: split differs", route, n, base)
		}
		if any := absentSymbols(absent, syms, present); any != wantGone || !equalWords(absent, wantAbsent) {
			t.Fatalf("%s: n=%d: absent symbols differ", route, n)
		}
		dst := fenced(t, 2*n, 0)
		mergeBF16(dst, syms, sm, base)
		if !bytes.Equal(dst, wantUnits) {
			t.Fatalf("%s: n=%d base=%d: merge differs", route, n, base)
		}
	})
}

func equalWords(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestBF16Routes(t *testing.T) {
	all := make([]byte, 2<<16) // every bit pattern
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
	}
	r := rand.New(rand.NewPCG(4, 9))
	var present [32]byte
	for i := range present {
		present[i] = byte(r.Uint32())
	}
	for base := range 241 {
		checkBF16(t, all[:2*(1000+256*base)], uint8(base), &present)
	}
	r.Shuffle(len(all)/2, func(i, j int) {
		all[2*i], all[2*j] = all[2*j], all[2*i]
		all[2*i+1], all[2*j+1] = all[2*j+1], all[2*i+1]
	})
	for _, n := range []int{0, 2, 62, 64, 66, 126, 128, 130, 190, 192, 256, 1000, 32768} {
		for _, base := range []uint8{0, 1, 112, 239, 240} {
			checkBF16(t, all[:2*n], base, &present)
		}
	}
}

func FuzzBF16Routes(f *testing.F) {
	f.Add([]byte("units"), uint8(112), uint64(3))
	f.Add(bytes.Repeat([]byte{0x80, 0x3f, 1}, 300), uint8(120), uint64(0))
	f.Fuzz(func(t *testing.T, units []byte, base uint8, gone uint64) {
		var present [32]byte
		for i := range present {
			present[i] = ^byte(gone >> (i % 8 * 8))
		}
		checkBF16(t, units, base%241, &present)
	})
}
