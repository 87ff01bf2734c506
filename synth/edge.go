package synth

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/wcodec/wcodec/tensor"
)

// gauss is what the edge file holds where values do not matter.
var gauss = source{law: lawNormal, lo: 0.02, hi: 0.02, tau: 0.25}

// tinyTensors is how many tensors the edge file of tiny tensors has.
const tinyTensors = 90000

// buildEdge lists what a reader or a codec may trip on. The order is that of the data, so that odd sizes misalign what
// comes after them.
func buildEdge(b *builder) config {
	bits, zero := source{law: lawBits}, source{law: lawRepeat}
	put := b.add

	// Sizes.
	put("scalar.f32", tensor.F32, gauss)
	put("scalar.u8", tensor.U8, bits) // one byte: from here on nothing is aligned
	put("one.bf16", tensor.BF16, gauss, 1)
	put("empty.first", tensor.F32, gauss, 0)
	put("empty.rows", tensor.BF16, gauss, 0, 4096)
	put("empty.cols", tensor.I64, bits, 4096, 0)
	put("odd.u8", tensor.U8, bits, 333)
	put("odd.i8", tensor.I8, bits, 3, 5, 7)
	put("odd.bool", tensor.BOOL, source{law: lawBool}, 10001)
	put("misaligned.f64", tensor.F64, gauss, 1000)
	put("misaligned.bf16", tensor.BF16, gauss, 300, 300)
	for rank := 0; rank <= 8; rank++ {
		shape := []uint64{2, 1, 3, 2, 1, 5, 2, 129}[8-rank:]
		put(fmt.Sprintf("rank.%d", rank), tensor.BF16, gauss, shape...)
	}

	// Matrices with ragged tiles.
	for _, s := range [][2]uint64{
		{255, 257}, {256, 256}, {257, 1000}, {1, 100000}, {100000, 1}, {300, 70}, {2, 70000}, {513, 256}, {7, 257},
	} {
		put(fmt.Sprintf("ragged.%dx%d", s[0], s[1]), tensor.BF16, gauss, s[0], s[1])
		put(fmt.Sprintf("ragged.%dx%d.fp8", s[0], s[1]), tensor.F8E4M3, source{law: lawBits}, s[0], s[1])
	}
	put("ragged.f32", tensor.F32, gauss, 257, 259)
	put("ragged.f16", tensor.F16, gauss, 259, 257)

	// Values.
	put("zero.bf16", tensor.BF16, zero, 512, 300)
	put("zero.f32", tensor.F32, zero, 70001)
	put("constant.bf16", tensor.BF16, source{law: lawRepeat, word: 0x3F80}, 300, 300)
	put("constant.f16", tensor.F16, source{law: lawRepeat, word: 0xBC00}, 65537)
	put("constant.u8", tensor.U8, source{law: lawRepeat, word: 0xA5}, 100003)
	put("minus.zero.f32", tensor.F32, source{law: lawRepeat, word: 1 << 31}, 1025)
	put("patterns.bf16", tensor.BF16, source{law: lawCount}, 256, 256)
	put("patterns.f16", tensor.F16, source{law: lawCount}, 65536)
	put("patterns.f8_e4m3", tensor.F8E4M3, source{law: lawCount}, 256)
	put("patterns.f8_e5m2", tensor.F8E5M2, source{law: lawCount}, 16, 16)
	put("nan.bf16", tensor.BF16, source{law: lawNaN}, 1001)
	put("nan.f32", tensor.F32, source{law: lawNaN}, 3333)
	put("nan.f64", tensor.F64, source{law: lawNaN}, 555)
	put("random.bf16", tensor.BF16, bits, 300, 400)
	put("random.f32", tensor.F32, bits, 40000)
	put("random.u8", tensor.U8, bits, 65536)
	put("patches.bf16", tensor.BF16, source{law: lawPatches}, 400, 300)
	put("patches.u8", tensor.U8, source{law: lawPatches}, 123457)
	put("origin.f16", tensor.F16, source{law: lawNormal, lo: 0.02, hi: 0.02, cast: true}, 300, 300)
	put("origin.f32", tensor.F32, source{law: lawNormal, lo: 0.02, hi: 0.02, cast: true}, 300, 300)
	put("small.f16", tensor.F16, source{law: lawNormal, lo: 1e-6, hi: 1e-6}, 20000) // subnormal, nearly all
	put("huge.f32", tensor.F32, source{law: lawNormal, lo: 1e37, hi: 1e37}, 20000)
	put("wide.f64", tensor.F64, gauss, 100, 300)
	put("complex", tensor.C64, gauss, 100, 257)
	put("mask.bool", tensor.BOOL, source{law: lawMask}, 1, 1, 128, 128)

	// Other types.
	put("ids.i64", tensor.I64, source{law: lawCount}, 1, 2048)
	put("steps.i32", tensor.I32, source{law: lawCount}, 5000)
	put("random.i64", tensor.I64, bits, 999)
	put("int8", tensor.I8, source{law: lawNormal, lo: 30, hi: 30}, 300, 301)
	put("f4", tensor.F4, bits, 64, 130)
	put("f6_e2m3", tensor.F6E2M3, bits, 32, 36)
	put("f6_e3m2", tensor.F6E3M2, bits, 4, 3)
	put("f8_e5m2", tensor.F8E5M2, gauss, 300, 256)
	put("f8_e4m3fnuz", tensor.F8E4M3FNUZ, bits, 300)
	put("f8_e8m0", tensor.F8E8M0, source{law: lawExponent}, 64, 100)
	for _, d := range []tensor.DType{tensor.I16, tensor.U16, tensor.U32, tensor.U64} {
		put("random."+strings.ToLower(string(d)), d, bits, 1111)
	}
	b.unknown("unknown.type", "F2_FROM_THE_FUTURE", bits, 3333, 100, 200)
	b.unknown("unknown.empty", "F2_FROM_THE_FUTURE", bits, 0, 0)

	// Names.
	for _, name := range []string{
		"", " ", "name with spaces", "größe.τ.权重.🧠", "quote\"back\\slash/slash", "line\nfeed\ttab\u0000nul\u007f",
		"../../escape", "C:\\windows", "model.layers.0.weight", "model.layers.00.weight", "a.b", "a", "__metadata",
		"e\u0301", "\u00e9", strings.Repeat("long.", 400),
	} {
		put(name, tensor.BF16, gauss, 17)
	}
	put("last.u8", tensor.U8, bits, 1)
	return nil
}

// unknown adds a tensor of a type that this project does not know, of size bytes.
func (b *builder) unknown(name string, d tensor.DType, src source, size uint64, shape ...uint64) {
	b.tensors = append(b.tensors, Tensor{Name: name, DType: d, Shape: shape, Size: size, src: src})
}

// buildTiny is ninety thousand tensors of 0 to 40 elements.
func buildTiny(b *builder) config {
	types := []tensor.DType{tensor.BF16, tensor.F32, tensor.F16, tensor.BF16, tensor.I64, tensor.U8}
	for i := range uint64(tinyTensors) {
		n := mix(i) % 41
		src := gauss
		d := types[mix(i)>>32%uint64(len(types))]
		if d == tensor.I64 || d == tensor.U8 {
			src = source{law: lawBits}
		}
		b.add(fmt.Sprintf("layers.%d.mlp.experts.%d.scale", i/1500, i%1500), d, src, n)
	}
	return nil
}

// Edge writes the edge file: every kind of tensor on which a reader or a codec is likely to trip.
func Edge(w io.Writer, seed uint64) error { return writeEdge(w, "edge", seed) }

// Tiny writes the second edge file: ninety thousand tiny tensors.
func Tiny(w io.Writer, seed uint64) error { return writeEdge(w, "tiny", seed) }

// writeEdge writes the edge file of that name in order.
func writeEdge(w io.Writer, name string, seed uint64) error {
	return Stream(context.Background(), w, Options{Model: name, Seed: seed})
}

// Stream writes a model of one shard to w, the bytes that Write gives its file. It fails with ErrRange where the model
// has more shards.
func Stream(ctx context.Context, w io.Writer, o Options) error {
	shards, err := Plan(o)
	if err != nil {
		return err
	}
	if len(shards) != 1 {
		return fmt.Errorf("synth: %s has %d shards and cannot be streamed: %w", o.Model, len(shards), ErrRange)
	}
	s := &shards[0]
	b, err := s.Header()
	if err != nil {
		return err
	}
	g, buf := NewGenerator(o.Seed), make([]byte, min(blockSize, s.DataSize))
	for at := uint64(0); ; {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
		if at == s.DataSize {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("synth: %w", err)
		}
		b = buf[:min(blockSize, s.DataSize-at)]
		if err := g.FillShard(b, s, at); err != nil {
			return err
		}
		at += uint64(len(b))
	}
}
