package wcodec

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wcodec/wcodec/tensor"
)

// layer is a dense layer that learns by gradient descent.
type layer struct {
	in, out int
	w, b    []float32
	x, y    []float32 // of the last forward pass
}

func newLayer(r *rand.Rand, in, out int) *layer {
	l := &layer{in: in, out: out, w: make([]float32, in*out), b: make([]float32, out), y: make([]float32, out)}
	for i := range l.w {
		l.w[i] = float32(r.NormFloat64() * math.Sqrt(2/float64(in)))
	}
	return l
}

func (l *layer) forward(x []float32, relu bool) []float32 {
	l.x = x
	for o := range l.out {
		sum := l.b[o]
		for i, w := range l.w[o*l.in : (o+1)*l.in] {
			sum += w * x[i]
		}
		if relu {
			sum = max(sum, 0)
		}
		l.y[o] = sum
	}
	return l.y
}

func (l *layer) backward(grad []float32, rate float32, relu bool) []float32 {
	back := make([]float32, l.in)
	for o, g := range grad {
		if g == 0 || relu && l.y[o] <= 0 {
			continue
		}
		row := l.w[o*l.in : (o+1)*l.in]
		for i := range row {
			back[i] += g * row[i]
			row[i] -= rate * g * l.x[i]
		}
		l.b[o] -= rate * g
	}
	return back
}

// train fits a network to a teacher and returns its layers with the mean loss of the first and of the last steps.
func train(seed uint64) (layers []*layer, before, after float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	teacher := newLayer(r, 64, 10)
	sizes := []int{64, 384, 300, 10}
	for i := range sizes[1:] {
		layers = append(layers, newLayer(r, sizes[i], sizes[i+1]))
	}
	const steps = 3000
	for step := range steps {
		x := make([]float32, 64)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		want := teacher.forward(x, true)
		y := x
		for i, l := range layers {
			y = l.forward(y, i < len(layers)-1)
		}
		grad, loss := make([]float32, 10), 0.0
		for i := range grad {
			grad[i] = y[i] - want[i]
			loss += float64(grad[i] * grad[i])
		}
		if step < 100 {
			before += loss / 100
		} else if step >= steps-100 {
			after += loss / 100
		}
		for i := len(layers) - 1; i >= 0; i-- {
			grad = layers[i].backward(grad, 0.002, i < len(layers)-1)
		}
	}
	return layers, before, after
}

// TestTrainedModel trains a small network for real, and takes its weights through the codec in every float type that
// checkpoints have.
func TestTrainedModel(t *testing.T) {
	layers, before, after := train(1)
	if after > before/3 {
		t.Fatalf("the network did not learn: loss %.3f, then %.3f", before, after)
	}
	for _, c := range []struct {
		d     tensor.DType
		ratio float64
	}{{tensor.F32, 1.17}, {tensor.BF16, 1.42}, {tensor.F16, 1.13}} {
		var tensors []plain
		for i, l := range layers {
			name := string(rune('a' + i))
			tensors = append(tensors, plain{name + ".weight", c.d, []uint64{uint64(l.out), uint64(l.in)}, cast(c.d, l.w)},
				plain{name + ".bias", c.d, []uint64{uint64(l.out)}, cast(c.d, l.b)})
		}
		want := build(t, tensors...)
		b := pack(t, "trained.safetensors", want, Options{})
		r := open(t, b)
		if _, err := r.Test(t.Context(), Options{}); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := r.Members()[0].Decompress(t.Context(), &got, Options{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%s: bytes differ", c.d)
		}
		// A small model pays for its tables and chunk states, so less than the large-file figures is asked of it.
		if ratio := float64(len(want)) / float64(len(b)); ratio < c.ratio {
			t.Errorf("%s: ratio %.3f, want %.3f", c.d, ratio, c.ratio)
		}
	}
}

func cast(d tensor.DType, values []float32) []byte {
	var b []byte
	for _, v := range values {
		bits := math.Float32bits(v)
		switch d {
		case tensor.F32:
			b = binary.LittleEndian.AppendUint32(b, bits)
		case tensor.BF16:
			b = binary.LittleEndian.AppendUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16))
		case tensor.F16:
			b = binary.LittleEndian.AppendUint16(b, half(v))
		}
	}
	return b
}

// half rounds to the nearest F16, halves away from zero; the weights here are far from its largest.
func half(v float32) uint16 {
	sign := uint16(math.Float32bits(v)>>16) & 0x8000
	x := math.Abs(float64(v))
	e := max(-14, math.Ilogb(max(x, 1e-30)))
	m := uint16(math.Round(math.Ldexp(x, 10-e))) // 1024 and up for normal numbers
	if m < 1024 {
		return sign | m
	}
	return sign | (uint16(e+14)<<10 + m)
}
