package synth

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/wcodec/wcodec/tensor"
)

// entropy is the order-0 entropy of a histogram, in bits.
func entropy(h *[256]float64) float64 {
	n, e := 0.0, 0.0
	for _, c := range h {
		n += c
	}
	for _, c := range h {
		if c > 0 {
			e -= c / n * math.Log2(c/n)
		}
	}
	return e
}

// exponents adds the exponents of BF16 elements to h, each with that weight.
func exponents(h *[256]float64, b []byte, weight float64) {
	for i := 0; i+1 < len(b); i += 2 {
		h[binary.LittleEndian.Uint16(b[i:])>>7&0xFF] += weight
	}
}

// TestExponentEntropy measures the exponents of whole BF16 checkpoints: shrunk ones all over, full ones by a sample of
// every tensor, weighted by its size.
func TestExponentEntropy(t *testing.T) {
	for _, c := range []struct {
		o      Options
		sample uint64 // bytes of each tensor, 0: all
	}{
		{Options{Model: "llama-3-8b", Layers: 2, Shrink: 8}, 0},
		{Options{Model: "llama-3-8b"}, 1 << 15},
		{Options{Model: "llama-3-70b"}, 1 << 14},
		{Options{Model: "qwen3-30b-a3b"}, 1 << 10},
	} {
		shards, err := Plan(c.o)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGenerator(3)
		var pooled [256]float64
		for i := range shards {
			for j := range shards[i].Tensors {
				x := &shards[i].Tensors[j]
				if c.sample == 0 {
					exponents(&pooled, all(t, g, x), 1)
					continue
				}
				// 16 pieces spread over the tensor, so that they lie in as many rows.
				const pieces = 16
				n := min(c.sample, x.Size) / pieces &^ 1
				for k := range uint64(pieces) {
					b := make([]byte, n)
					if err := g.Fill(b, x, x.Size/pieces*k&^1); err != nil {
						t.Fatal(err)
					}
					exponents(&pooled, b, float64(x.Size)/float64(n*pieces))
				}
			}
		}
		if e := entropy(&pooled); e < 2.58 || e > 2.63 {
			t.Errorf("%s, %d layers, shrunk by %d: exponents hold %.4f bits, want 2.58 to 2.63", c.o.Model, c.o.Layers,
				c.o.Shrink, e)
		}
	}
}

// floats are the numbers of a tensor.
func floats(t testing.TB, g *Generator, x *Tensor) []float32 {
	t.Helper()
	size, n := x.units()
	b, v := all(t, g, x), make([]float32, n)
	if len(b) != int(n)*size {
		t.Fatalf("%s: %d bytes for %d elements", x.Name, len(b), n)
	}
	decode(v, b, x.DType)
	return v
}

// rms is the root of the mean square.
func rms(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum / float64(len(v)))
}

// TestRowsAndColumns measures a projection: the logarithms of the rows' scales, and the columns that are larger.
func TestRowsAndColumns(t *testing.T) {
	x := find(t, Options{Model: "llama-3-8b", Layers: 1, Shrink: 2}, "model.layers.0.mlp.down_proj.weight")
	v := floats(t, NewGenerator(5), x)
	rows, cols := int(x.Shape[0]), int(x.Shape[1])
	var m1, m2 float64
	squares := make([]float64, cols)
	for r := range rows {
		l := math.Log(rms(v[r*cols : (r+1)*cols]))
		m1 += l
		m2 += l * l
		for c, f := range v[r*cols : (r+1)*cols] {
			squares[c] += float64(f) * float64(f) / math.Exp(2*l)
		}
	}
	m1, m2 = m1/float64(rows), m2/float64(rows)
	if tau := math.Sqrt(m2 - m1*m1); tau < 0.23 || tau > 0.27 {
		t.Errorf("logarithms of row scales have sigma %.3f, want 0.25", tau)
	}
	if sigma := math.Exp(m1); sigma < 0.017 || sigma > 0.021 {
		t.Errorf("the median row has sigma %.4f, want 0.0175 to 0.02", sigma)
	}
	large := 0
	for c, s := range squares {
		switch f := math.Sqrt(s / float64(rows)); {
		case f > 3 && f < 8.6:
			large++
		case f > 1.2 || f < 0.8:
			t.Errorf("column %d is %.2f times as large as the others", c, f)
		}
	}
	if want := float64(cols) / 1000; math.Abs(float64(large)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d large columns of %d, want about %.0f", large, cols, want)
	}
}

// TestKinds measures sigma and tails of the other kinds of tensors.
func TestKinds(t *testing.T) {
	o := Options{Model: "llama-3-8b", Layers: 1, Shrink: 8}
	g := NewGenerator(6)
	for _, c := range []struct {
		name   string
		lo, hi float64 // of the middle half's sigma, were it Gaussian
		far    float64 // least share of what is beyond 5 such sigmas
		mean   float64
	}{
		{"model.embed_tokens.weight", 0.0148, 0.0152, 0, 0},
		{"lm_head.weight", 0.0198, 0.0202, 0, 0},
		{"model.layers.0.self_attn.v_proj.weight", 0.0145, 0.021, 0, 0},
		{"model.layers.0.self_attn.q_proj.weight", 0.015, 0.032, 1e-3, 0},
		{"model.layers.0.self_attn.k_proj.weight", 0.015, 0.032, 1e-3, 0},
		{"model.norm.weight", 0.04, 0.11, 0, 1},
	} {
		v := floats(t, g, find(t, o, c.name))
		v = v[:min(len(v), 1<<21)]
		var sum float64
		within := func(limit float64) (n int) {
			for _, x := range v {
				if math.Abs(float64(x)-c.mean) < limit {
					n++
				}
			}
			return n
		}
		for _, x := range v {
			sum += float64(x)
		}
		if mean := sum / float64(len(v)); math.Abs(mean-c.mean) > 0.02*c.mean+0.001 {
			t.Errorf("%s: mean %v", c.name, mean)
		}
		lo, hi := 0.0, 1.0
		for range 30 {
			if mid := (lo + hi) / 2; within(mid)*2 < len(v) {
				lo = mid
			} else {
				hi = mid
			}
		}
		sigma := lo / 0.6745
		if sigma < c.lo || sigma > c.hi {
			t.Errorf("%s: sigma %v, want %v to %v", c.name, sigma, c.lo, c.hi)
		}
		if far := 1 - float64(within(5*sigma))/float64(len(v)); far < c.far || far > 0.02 {
			t.Errorf("%s: %v of the values beyond 5 sigma, want at least %v", c.name, far, c.far)
		}
	}
}

// TestF16OfBF16 checks that Llama-2's numbers are BF16 numbers cast to F16: the low mantissa bits are zero in all that
// are not subnormal.
func TestF16OfBF16(t *testing.T) {
	x := find(t, Options{Model: "llama-2-7b", Layers: 1, Shrink: 4}, "model.layers.0.mlp.gate_proj.weight")
	b, subnormal, low := all(t, NewGenerator(1), x), 0, 0
	for i := 0; i < len(b); i += 2 {
		h := binary.LittleEndian.Uint16(b[i:])
		switch {
		case h&0x7C00 == 0:
			subnormal++
			if h&7 != 0 {
				low++
			}
		case h&7 != 0:
			t.Fatalf("element %d is %#04x, no BF16 number", i/2, h)
		}
	}
	if share := float64(subnormal) / float64(len(b)/2); share < 1e-3 || share > 1e-2 || low == 0 {
		t.Errorf("%v of the numbers are subnormal, %d of them with low bits", share, low)
	}
}

// TestF32OfBF16 checks the same of F32.
func TestF32OfBF16(t *testing.T) {
	x := find(t, Options{Model: "tinyllama-f32", Layers: 1, Shrink: 16}, "model.layers.0.mlp.gate_proj.weight")
	b := all(t, NewGenerator(1), x)
	for i := 0; i < len(b); i += 4 {
		if b[i] != 0 || b[i+1] != 0 {
			t.Fatalf("element %d is no BF16 number", i/4)
		}
	}
}

// TestBlocks checks quantised tensors: every whole block reaches 448 and hardly anything else does, the
// numbers times their scales are those of a projection, and the codes hold as much as those of Gaussians do.
func TestBlocks(t *testing.T) {
	o := Options{Model: "deepseek-fp8", Layers: 2, Shrink: 8}
	const name = "model.layers.0.mlp.gate_proj.weight"
	w, s, g := find(t, o, name), find(t, o, name+"_scale_inv"), NewGenerator(2)
	v, scales := floats(t, g, w), floats(t, g, s)
	rows, cols := int(w.Shape[0]), int(w.Shape[1])
	across := (cols + blockSide - 1) / blockSide
	most, full := make([]float32, len(scales)), 0
	for i := range v {
		b := i/cols/blockSide*across + i%cols/blockSide
		if m := float32(math.Abs(float64(v[i]))); m >= most[b] {
			most[b] = m
		}
		if math.Abs(float64(v[i])) == maxE4M3 {
			full++
		}
		v[i] *= scales[b]
	}
	for b, m := range most {
		if m != maxE4M3 {
			t.Errorf("block %d reaches %v, want 448", b, m)
		}
		if scales[b] < 0.04/maxE4M3 || scales[b] > 1.5/maxE4M3 {
			t.Errorf("block %d has scale %v", b, scales[b])
		}
	}
	if full > 8*len(most) {
		t.Errorf("%d values saturate in %d blocks", full, len(most))
	}
	for r := 0; r < rows; r += 97 {
		if sigma := rms(v[r*cols : (r+1)*cols]); sigma < 0.006 || sigma > 0.06 {
			t.Errorf("row %d has sigma %v", r, sigma)
		}
	}
	var h [256]float64
	for _, c := range all(t, g, w) {
		h[c>>3&15]++
	}
	if e := entropy(&h); e < 2.5 || e > 2.65 {
		t.Errorf("E4M3 exponents hold %.3f bits", e)
	}
}

// TestRowScales checks the same of I8 with a scale for each row.
func TestRowScales(t *testing.T) {
	o := Options{Model: "tinyllama-int8", Layers: 1, Shrink: 2}
	const name = "model.layers.0.mlp.up_proj.weight"
	w, s, g := find(t, o, name), find(t, o, name+"_scale"), NewGenerator(2)
	v, scales := floats(t, g, w), floats(t, g, s)
	cols := int(w.Shape[1])
	for r, scale := range scales {
		row, most, full := v[r*cols:(r+1)*cols], 0.0, 0
		for _, x := range row {
			most = max(most, math.Abs(float64(x)))
			if math.Abs(float64(x)) == maxI8 {
				full++
			}
		}
		if most != maxI8 || full > 30 {
			t.Errorf("row %d reaches %v, %d times", r, most, full)
		}
		if sigma := rms(row) * float64(scale); sigma < 0.005 || sigma > 0.08 {
			t.Errorf("row %d has sigma %v", r, sigma)
		}
	}
}

// TestRotaryAndMask checks the buffers against their definitions.
func TestRotaryAndMask(t *testing.T) {
	g := NewGenerator(1)
	v := floats(t, g, find(t, Options{Model: "llama-2-7b", Layers: 1}, "model.layers.0.self_attn.rotary_emb.inv_freq"))
	for i, f := range v {
		if want := math.Pow(10000, -float64(i)/64); math.Abs(float64(f)/want-1) > 1e-3 {
			t.Errorf("inverse frequency %d is %v, want %v", i, f, want)
		}
	}
	x := find(t, Options{Model: "gpt2", Layers: 1, Shrink: 8}, "h.0.attn.bias")
	for i, f := range floats(t, g, x) {
		if r, c := i/int(x.Shape[3]), i%int(x.Shape[3]); (f == 1) != (c <= r) || f != 0 && f != 1 {
			t.Fatalf("mask of row %d, column %d is %v", r, c, f)
		}
	}
}

// TestNarrowTypes holds the rounding of every narrow type to a search for the nearest of its numbers, ties to the even
// code, and the decoding to the definition of the type.
func TestNarrowTypes(t *testing.T) {
	for _, c := range []struct {
		d         tensor.DType
		exp, mant int
		encode    func(float32) uint32
		inf       bool
	}{
		{tensor.F16, 5, 10, func(f float32) uint32 { return uint32(f16(f)) }, true},
		{tensor.F8E5M2, 5, 2, func(f float32) uint32 { return uint32(e5m2(f)) }, true},
		{tensor.F8E4M3, 4, 3, func(f float32) uint32 { return uint32(e4m3(f)) }, false},
	} {
		bias, size := 1<<(c.exp-1)-1, (1+c.exp+c.mant)/8
		codes := 1 << (c.exp + c.mant)
		numbers := make([]float64, 0, codes)
		for code := range codes {
			e, m := code>>c.mant, code&(1<<c.mant-1)
			x := math.Ldexp(float64(m)+float64(int(1)<<c.mant), e-bias-c.mant)
			if e == 0 {
				x = math.Ldexp(float64(m), 1-bias-c.mant)
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(code))
			var v [1]float32
			decode(v[:], b[:size], c.d)
			if c.inf && e == 1<<c.exp-1 || !c.inf && code == codes-1 {
				if v[0]-v[0] == 0 {
					t.Fatalf("%s: code %#x is %v, want infinity or NaN", c.d, code, v[0])
				}
				continue
			}
			numbers = append(numbers, x)
			if float64(v[0]) != x {
				t.Fatalf("%s: code %#x is %v, want %v", c.d, code, v[0], x)
			}
			if got := c.encode(v[0]); got != uint32(code) {
				t.Fatalf("%s: %v becomes %#x, want %#x", c.d, v[0], got, code)
			}
		}
		for i := range len(numbers) - 1 {
			half := float32((numbers[i] + numbers[i+1]) / 2)
			for f, want := range map[float32]int{
				half: i + i&1, math.Nextafter32(half, 0): i, math.Nextafter32(half, 1e9): i + 1,
			} {
				if got := c.encode(f); got != uint32(want) {
					t.Fatalf("%s: %v becomes %#x, want %#x", c.d, f, got, want)
				}
				var b [2]byte
				encode(b[:size], []float32{-f}, c.d)
				if got := int(binary.LittleEndian.Uint16(b[:])); got != want|codes {
					t.Fatalf("%s: %v becomes %#x, want %#x", c.d, -f, got, want|codes)
				}
			}
		}
	}
}

// TestBF16 holds the rounding to the nearest number, ties to even.
func TestBF16(t *testing.T) {
	for code := range 0x7F80 - 1 {
		lo, hi := uint32(code)<<16, uint32(code+1)<<16
		for bits, want := range map[uint32]int{
			lo: code, lo + 0x7FFF: code, lo + 0x8000: code + code&1, lo + 0x8001: code + 1, hi: code + 1,
		} {
			if got := bf16(math.Float32frombits(bits)); int(got) != want {
				t.Fatalf("%#08x becomes %#04x, want %#04x", bits, got, want)
			}
		}
	}
	if got := bf16(math.Float32frombits(0x7F800001)); got&0x7FFF <= 0x7F80 {
		t.Errorf("a NaN becomes %#04x", got)
	}
}
