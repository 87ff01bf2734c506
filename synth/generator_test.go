package synth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// all makes a whole tensor.
func all(t testing.TB, g *Generator, x *Tensor) []byte {
	t.Helper()
	b := make([]byte, x.Size)
	if err := g.Fill(b, x, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFillAnywhere takes parts of tensors of every kind and holds them to the whole.
func TestFillAnywhere(t *testing.T) {
	g := NewGenerator(7)
	for _, model := range Models() {
		o := Options{Model: model, Layers: 1, Shrink: 16}
		if model == "edge" || model == "tiny" {
			o.Layers = 0
		}
		shards, err := Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range shards {
			s := &shards[i]
			for j := 0; j < len(s.Tensors); j += 1 + len(s.Tensors)/100 {
				x := &s.Tensors[j]
				if x.Size == 0 || x.Size > 1<<22 {
					continue
				}
				whole := all(t, g, x)
				rapid.Check(t, func(t *rapid.T) {
					from := rapid.IntRange(0, len(whole)).Draw(t, "from")
					n := min(rapid.SampledFrom([]int{0, 1, 2, 3, 7, 64, 1000, 5001, 20000, 300000}).Draw(t, "n"), len(whole)-from)
					b := make([]byte, n)
					if err := g.Fill(b, x, uint64(from)); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(b, whole[from:from+n]) {
						t.Fatalf("%s: %d bytes of %s at %d differ from the whole", model, n, x.Name, from)
					}
				})
			}
		}
	}
}

func TestFillRange(t *testing.T) {
	g := NewGenerator(1)
	x := find(t, Options{Model: "gpt2", Layers: 1, Shrink: 16}, "wte.weight")
	for _, c := range []struct {
		n      int
		offset uint64
	}{{1, x.Size}, {2, x.Size - 1}, {0, x.Size + 1}, {1, 1<<64 - 1}} {
		if err := g.Fill(make([]byte, c.n), x, c.offset); !errors.Is(err, ErrRange) {
			t.Errorf("%d bytes at %d of %d: %v, want ErrRange", c.n, c.offset, x.Size, err)
		}
	}
}

// TestSeeds checks that the seed and the name change every value and that nothing else does.
func TestSeeds(t *testing.T) {
	x := find(t, Options{Model: "llama-3-8b", Layers: 2, Shrink: 16}, "model.layers.0.mlp.up_proj.weight")
	y := find(t, Options{Model: "llama-3-8b", Layers: 2, Shrink: 16}, "model.layers.1.mlp.up_proj.weight")
	a, b, c := all(t, NewGenerator(1), x), all(t, NewGenerator(2), x), all(t, NewGenerator(1), y)
	for name, other := range map[string][]byte{"seed": b, "name": c} {
		same := 0
		for i := 0; i < len(a); i += 2 {
			if a[i] == other[i] && a[i+1] == other[i+1] {
				same++
			}
		}
		if same > len(a)/2/50 {
			t.Errorf("another %s: %d of %d values are the same", name, same, len(a)/2)
		}
	}
	if !bytes.Equal(a, all(t, NewGenerator(1), x)) {
		t.Error("the same seed gave other bytes")
	}
}

// golden are the SHA-256 of all shards, headers included, of models of one layer shrunk by 32 with seed 1. They must
// never change: files made by one version are compared with files made by another.
var golden = map[string]string{
	"llama-2-7b":     "5aeea327bf1d21a2354c6f8db8f65305b27460c8f421450118dfca00737d1a20",
	"llama-3-8b":     "f43c9db70754f9825151eb2fc3c514f8ed95c4dbff64f4d0002c492bd24d2d4e",
	"llama-3-70b":    "bfb4780ac6db47bea867a7adcf9259bc5078d603cab4a3b09814044499403d0c",
	"qwen3-30b-a3b":  "5841efb639b71d616ebedeb571d2768594806dd96f8f2ab1c8cc788875ee828b",
	"deepseek-fp8":   "2ea7cdb3712d167d6a1f2a2c83eefd665484d5dfb72c280fb448048cfa42edec",
	"tinyllama-f32":  "504b0e7ee10e32ff4fec32e5298a9624065abeac09cfc316597954f02e2907f0",
	"tinyllama-int8": "765f04503319adcb4b037c4722149d4d404e17e4b5e8e2b7775786070456d382",
	"pythia-410m":    "92ed69f90428189d5f08c835ec8ca5c51d5b7d3f0a1c2700d86e94e3821c4143",
	"gpt2":           "5f083ba6d3a83dfbce0371608e689197fcf027d69b8457f563ee72fcb7978a58",
	"edge":           "aefbbcd240ad2069ad5304e50617a733ea8f9a7e69570540e170f7a2b8d26703",
	"tiny":           "668da13f3c51e5be5c35a104594c9236c1ccef3c4b92b3847d9ee1de29c79320",
}

// TestGolden also finds a platform on which floating point is not what the package comment says.
func TestGolden(t *testing.T) {
	for _, model := range Models() {
		o := Options{Model: model, Layers: 1, Shrink: 32}
		if model == "edge" || model == "tiny" {
			o.Layers = 0
		}
		shards, err := Plan(o)
		if err != nil {
			t.Fatal(err)
		}
		g, h := NewGenerator(1), sha256.New()
		for i := range shards {
			header, err := shards[i].Header()
			if err != nil {
				t.Fatal(err)
			}
			h.Write(header)
			b := make([]byte, shards[i].DataSize)
			if err := g.FillShard(b, &shards[i], 0); err != nil {
				t.Fatal(err)
			}
			h.Write(b)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != golden[model] {
			t.Errorf("%q: %q,", model, got)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, c := range []struct{ name, model, tensor string }{
		{"BF16", "llama-3-8b", "model.layers.0.mlp.gate_proj.weight"},
		{"BF16Student", "llama-3-8b", "model.layers.0.self_attn.q_proj.weight"},
		{"F16OfBF16", "llama-2-7b", "model.layers.0.mlp.gate_proj.weight"},
		{"E4M3", "deepseek-fp8", "model.layers.0.mlp.experts.0.gate_proj.weight"},
		{"E4M3Scales", "deepseek-fp8", "model.layers.0.mlp.experts.0.gate_proj.weight_scale_inv"},
		{"F32", "gpt2", "h.0.mlp.c_fc.weight"},
		{"F32OfBF16", "tinyllama-f32", "model.layers.0.mlp.gate_proj.weight"},
		{"F16", "pythia-410m", "gpt_neox.layers.0.mlp.dense_h_to_4h.weight"},
		{"I8", "tinyllama-int8", "model.layers.0.mlp.gate_proj.weight"},
	} {
		x := find(b, Options{Model: c.model, Layers: 1}, c.tensor)
		b.Run(c.name, func(b *testing.B) {
			buf, g := make([]byte, min(blockSize, x.Size)), NewGenerator(1)
			b.SetBytes(int64(len(buf)))
			for i := range b.N {
				at := uint64(i) % (x.Size / uint64(len(buf))) * uint64(len(buf))
				if err := g.Fill(buf, x, at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
