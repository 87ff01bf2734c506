package rans

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/codec/codectest"
	"github.com/wcodec/wcodec/tensor"
)

func TestLog2(t *testing.T) {
	for v := uint32(1); v <= probTotal; v++ {
		if got := float64(log2(v)) / costOne; got > math.Log2(float64(v)) || got < math.Log2(float64(v))-1.0/costOne {
			t.Fatalf("log2(%d) = %f", v, got)
		}
	}
}

// The frequencies must sum to 4096, cover what has weight, and no single step from one symbol to another may save
// more than a rounding error.
func TestNormalise(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for k := range 60 {
		var w weights
		symbols := 1 + r.IntN(256)
		for range symbols {
			w[r.IntN(256)] = 1 + uint64(math.Exp(r.Float64()*float64(k%26)))
		}
		f := w.normalise()
		sum, present := 0, 0
		for s, v := range f {
			sum += int(v)
			if v > 0 {
				present++
			}
			if w[s] > 0 && v == 0 || v == probTotal {
				t.Fatalf("symbol %d of weight %d has frequency %d", s, w[s], v)
			}
		}
		if sum != probTotal || present < 2 {
			t.Fatalf("%d frequencies sum to %d", present, sum)
		}
		best := w.cost(f)
		for a := range f {
			for b := range f {
				if a == b || f[a] == 0 || f[a] >= probTotal-1 || f[b] < 2 {
					continue
				}
				other := *f
				other[a]++
				other[b]--
				if c := w.cost(&other); c < best-best/10000 {
					t.Fatalf("moving one from %d to %d costs %d instead of %d", b, a, c, best)
				}
			}
		}
	}
}

func TestSurvey(t *testing.T) {
	units := func(f func(i int) uint64) []byte {
		b := make([]byte, 4*1000)
		for i := range 1000 {
			v := f(i)
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		}
		return b
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, tc := range []struct {
		name       string
		data       []byte
		drop       uint
		base, mode uint64
	}{
		{"zeros", units(func(int) uint64 { return 0 }), 23, 0, 0},
		{"one exponent", units(func(int) uint64 { return 200<<23 | uint64(r.Uint32()&0x7fffff) }), 0, 185, 15},
		{"low half zero", units(func(i int) uint64 { return 100<<23 | uint64(r.Uint32()&0x7f0000) }), 16, 85, 15},
		{"low half zero, 10% not", units(func(i int) uint64 {
			if i%10 == 0 {
				return 100<<23 | uint64(r.Uint32()&0x7fffff)
			}
			return 100<<23 | uint64(r.Uint32()&0x7f0000)
		}), 16, 85, 15},
		{"low half zero, half not", units(func(i int) uint64 {
			if i%2 == 0 {
				return 100<<23 | uint64(r.Uint32()|1)&0x7fffff
			}
			return 100<<23 | uint64(r.Uint32()&0x7f0000)
		}), 0, 85, 15},
		{"the highest exponents", units(func(i int) uint64 { return uint64(240+i%16)<<23 | uint64(i&1) }), 0, 240, 0},
		{"two groups", units(func(i int) uint64 { return uint64([]int{10, 11, 12, 100, 101}[i%5])<<23 | 1 }), 0, 0, 10},
	} {
		l := layout{size: 4, exp: 8, mant: 23}
		var v survey
		v.look(&l, tc.data)
		if v.drop(&l) != tc.drop || v.base(&l) != tc.base || uint64(v.mode(tc.base)) != tc.mode {
			t.Errorf("%s: drop %d, base %d, mode %d", tc.name, v.drop(&l), v.base(&l), v.mode(tc.base))
		}
	}
}

// What Fit expects must be what comes out, on a sample that is all there is.
func TestEstimates(t *testing.T) {
	const n = 8 * maxUnits
	for _, unit := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64, tensor.F8E5M2, tensor.I8, tensor.I32} {
		for _, level := range []codec.Level{codec.Default, codec.Dense} {
			data := codectest.Gaussian(unit, n)
			c, err := New().Fit(unit, data, true, level)
			if err != nil {
				t.Fatal(err)
			}
			size := unitSize(unit)
			stored := len(c.AppendTable(nil))
			for at := 0; at < len(data); at += maxUnits * size {
				out, err := c.EncodeChunk(nil, data[at:at+maxUnits*size], new(codec.Scratch))
				if err != nil {
					t.Fatal(err)
				}
				stored += len(out)
			}
			got := 8 * float64(stored) / n
			if want := c.BitsPerUnit(); math.Abs(got-want) > want/500 {
				t.Errorf("%s, level %d: %.4f bits a unit, %.4f expected", unit, level, got, want)
			}
		}
	}
}

func TestUnsuitable(t *testing.T) {
	for _, tc := range []struct {
		unit tensor.DType
		data []byte
	}{
		{tensor.BF16, nil}, {tensor.F32, []byte{1, 2, 3}}, {tensor.U8, codectest.Random(100000)},
		{tensor.BF16, codectest.Random(100000)}, {tensor.BF16, codectest.Gaussian(tensor.BF16, 100)},
	} {
		for _, level := range []codec.Level{codec.Default, codec.Fast, codec.Dense} {
			if _, err := New().Fit(tc.unit, tc.data, true, level); !errors.Is(err, codec.ErrUnsuitable) {
				t.Errorf("%s, %d bytes: %v", tc.unit, len(tc.data), err)
			}
		}
	}
	c, err := New().Fit(tensor.F32, codectest.Gaussian(tensor.F32, 10000), true, codec.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, 4, 4000*4 + 2, 4 * 32769} {
		if out, err := c.EncodeChunk([]byte{1}, make([]byte, n), new(codec.Scratch)); !errors.Is(err, codec.ErrUnsuitable) || len(out) != 1 {
			t.Errorf("chunk of %d bytes: %v", n, err)
		}
	}
}

// Tables that no encoder writes.
func TestBadTables(t *testing.T) {
	two := append(append([]byte{3}, make([]byte, 31)...), 0x80, 0x10, 0x80, 0x10) // 2048 each
	good := append([]byte{modePairs, 0, 100, 0}, two...)
	list := func(bitmap byte, rest ...byte) []byte {
		return append(append([]byte{modePairs, 0, 100, 0, bitmap}, make([]byte, 31)...), rest...)
	}
	for _, tc := range []struct {
		name  string
		unit  tensor.DType
		table []byte
		ok    bool
	}{
		{"good", tensor.BF16, good, true},
		{"nothing", tensor.BF16, nil, false},
		{"mode 0", tensor.BF16, append([]byte{0}, good[1:]...), false},
		{"mode 4", tensor.BF16, append([]byte{4}, good[1:]...), false},
		{"pairs of integers", tensor.I16, good, false},
		{"pairs of E8M0", tensor.F8E8M0, good, false},
		{"drop of 7", tensor.BF16, append([]byte{modePairs, 7, 100, 0}, two...), true},
		{"drop of 8", tensor.BF16, append([]byte{modePairs, 8, 100, 0}, two...), false},
		{"base 240", tensor.BF16, append([]byte{modePairs, 0, 240, 0}, two...), true},
		{"base 241", tensor.BF16, append([]byte{modePairs, 0, 241, 0}, two...), false},
		{"base 1 of E4M3", tensor.F8E4M3, append([]byte{modePairs, 0, 1, 0}, two...), false},
		{"base 2032 of F64", tensor.F64, append([]byte{modePairs, 0, 0xf0, 7}, two...), true},
		{"base 2033 of F64", tensor.F64, append([]byte{modePairs, 0, 0xf1, 7}, two...), false},
		{"frequency 0", tensor.BF16, list(7, 0, 0x80, 0x10, 0x80, 0x10), false},
		{"frequency 4096", tensor.BF16, list(1, 0x80, 0x20), false},
		{"one symbol", tensor.BF16, list(1, 0xff, 0x1f), false},
		{"sum 4095", tensor.BF16, list(3, 0x80, 0x10, 0xff, 0x0f), false},
		{"sum 4097", tensor.BF16, list(3, 0x80, 0x10, 0x81, 0x10), false},
		{"long uvarint", tensor.BF16, list(3, 0xff, 0x1f, 0x81, 0x00), false},
		{"three-byte uvarint", tensor.BF16, list(3, 0x80, 0x90, 0x00, 0x80, 0x10), false},
		{"no frequencies", tensor.BF16, list(0), false},
		{"list cut", tensor.BF16, list(3, 0x80, 0x10, 0x80), false},
		{"joint", tensor.BF16, append([]byte{modeJoint, 0, 100, 0, 4}, two...), true},
		{"joint without bits", tensor.BF16, append([]byte{modeJoint, 0, 100, 0, 0}, two...), false},
		{"joint of 5 bits", tensor.BF16, append([]byte{modeJoint, 0, 100, 0, 5}, two...), false},
		{"joint beyond what is kept", tensor.BF16, append([]byte{modeJoint, 4, 100, 0, 4}, two...), false},
		{"joint symbol beyond its bits", tensor.BF16, append(append([]byte{modeJoint, 0, 100, 0, 1, 3}, append(make([]byte, 3), append([]byte{1}, make([]byte, 27)...)...)...), 0x80, 0x08, 0x80, 0x08, 0x80, 0x10), false},
		{"raw planes", tensor.I16, []byte{modePlanes, 0, 0}, true},
		{"a plane too few", tensor.I32, []byte{modePlanes, 0, 0, 0}, false},
		{"a plane too many", tensor.I16, []byte{modePlanes, 0, 0, 0}, false},
		{"method 3", tensor.I16, []byte{modePlanes, 0, 3}, false},
		{"constant without value", tensor.I16, []byte{modePlanes, 0, 1}, false},
		{"planes of an unknown type", "X", append([]byte{modePlanes, 2}, two...), true},
	} {
		_, err := New().Parse(tc.unit, tc.table)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
