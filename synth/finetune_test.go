package synth

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
)

// made writes a model and returns its directory.
func made(t *testing.T, o Options) string {
	t.Helper()
	dir := t.TempDir()
	if err := Write(context.Background(), dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read parses a safetensors file.
func read(t *testing.T, path string) ([]byte, *safetensors.Header) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := safetensors.Parse(b, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return b, h
}

// TestFineTune tunes checkpoints of every type and measures by how much their tensors moved.
func TestFineTune(t *testing.T) {
	const sigma = 1e-3
	for _, c := range []struct {
		o     Options
		moved []string
		still []string
	}{
		{
			Options{Model: "llama-3-8b", Shrink: 64},
			[]string{"model.layers.0.mlp.up_proj.weight", "model.embed_tokens.weight", "model.layers.31.self_attn.q_proj.weight"}, nil,
		}, {
			Options{Model: "llama-2-7b", Layers: 2, Shrink: 32},
			[]string{"model.layers.0.mlp.up_proj.weight", "lm_head.weight"}, []string{"model.layers.0.self_attn.rotary_emb.inv_freq"},
		}, {
			Options{Model: "gpt2", Layers: 1, Shrink: 8},
			[]string{"h.0.attn.c_attn.weight", "h.0.mlp.c_fc.bias"}, []string{"h.0.attn.bias"},
		}, {
			Options{Model: "deepseek-fp8", Layers: 2, Shrink: 32},
			[]string{"model.layers.1.mlp.experts.9.up_proj.weight"},
			[]string{"model.layers.1.mlp.experts.9.up_proj.weight_scale_inv"},
		}, {
			Options{Model: "tinyllama-int8", Layers: 2, Shrink: 16},
			[]string{"model.layers.1.mlp.up_proj.weight"}, []string{"model.layers.1.mlp.up_proj.weight_scale"},
		},
	} {
		base, out, again := made(t, c.o), t.TempDir(), t.TempDir()
		if err := FineTune(context.Background(), base, out, Tune{Seed: 5, Sigma: sigma}); err != nil {
			t.Fatal(err)
		}
		if err := FineTune(context.Background(), base, again, Tune{Seed: 5, Sigma: sigma, Workers: 1}); err != nil {
			t.Fatal(err)
		}
		was, is := sums(t, base), sums(t, out)
		if len(was) != len(is) {
			t.Fatalf("%s: %d files of %d", c.o.Model, len(is), len(was))
		}
		for name, sum := range sums(t, again) {
			if is[name] != sum {
				t.Errorf("%s: %s differs between two runs", c.o.Model, name)
			}
			if tuned := filepath.Ext(name) == ".safetensors"; tuned == (was[name] == sum) {
				t.Errorf("%s: %s is tuned: %v, is the same: %v", c.o.Model, name, tuned, was[name] == sum)
			}
		}
		shards, err := Plan(c.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shards {
			b, h := read(t, filepath.Join(base, s.File))
			f, hf := read(t, filepath.Join(out, s.File))
			if !bytes.Equal(h.Raw, hf.Raw) {
				t.Fatalf("%s: the header of %s differs", c.o.Model, s.File)
			}
			for i := range h.Tensors {
				x := &h.Tensors[i]
				old, now := b[h.DataOffset()+x.Begin:h.DataOffset()+x.End], f[h.DataOffset()+x.Begin:h.DataOffset()+x.End]
				for _, name := range c.still {
					if x.Name == name && !bytes.Equal(old, now) {
						t.Errorf("%s: %s moved", c.o.Model, name)
					}
				}
				for _, name := range c.moved {
					if x.Name == name {
						if d := distance(t, c.o, name, old, now); math.Abs(d/sigma-1) > 0.15 {
							t.Errorf("%s: %s moved by %v, want %v", c.o.Model, name, d, sigma)
						}
					}
				}
			}
		}
	}
}

// distance is the root mean square of the difference of two versions of a tensor, scales taken into account.
func distance(t *testing.T, o Options, name string, old, now []byte) float64 {
	t.Helper()
	x := find(t, o, name)
	_, n := x.units()
	a, b := make([]float32, n), make([]float32, n)
	decode(a, old, x.DType)
	decode(b, now, x.DType)
	step := func(int) float64 { return 1 }
	if x.src.quant != quantNone {
		suffix := map[quant]string{quantRow: "_scale", quantBlock: "_scale_inv"}[x.src.quant]
		scales := floats(t, NewGenerator(o.Seed), find(t, o, name+suffix))
		cols := int(x.Shape[1])
		step = func(i int) float64 {
			if x.src.quant == quantRow {
				return float64(scales[i/cols])
			}
			return float64(scales[i/cols/blockSide*((cols+blockSide-1)/blockSide)+i%cols/blockSide])
		}
	}
	sum := 0.0
	for i := range a {
		d := (float64(b[i]) - float64(a[i])) * step(i)
		sum += d * d
	}
	return math.Sqrt(sum / float64(n))
}

// TestFineTuneEdge checks what must not move in the edge file: everything that is no number, and zeros.
func TestFineTuneEdge(t *testing.T) {
	base := filepath.Join(made(t, Options{Model: "edge", Seed: 1}), "model.safetensors")
	out := filepath.Join(t.TempDir(), "tuned.safetensors")
	if err := FineTune(context.Background(), base, out, Tune{Seed: 1, Sigma: 1}); err != nil {
		t.Fatal(err)
	}
	b, h := read(t, base)
	f, _ := read(t, out)
	if len(b) != len(f) {
		t.Fatalf("%d bytes of %d", len(f), len(b))
	}
	for i := range h.Tensors {
		x := &h.Tensors[i]
		old, now := b[h.DataOffset()+x.Begin:h.DataOffset()+x.End], f[h.DataOffset()+x.Begin:h.DataOffset()+x.End]
		same := bytes.Equal(old, now)
		_, float := x.DType.Float()
		switch x.Name {
		case "zero.bf16", "zero.f32", "minus.zero.f32", "nan.bf16", "nan.f32", "nan.f64":
			if !same {
				t.Errorf("%s moved", x.Name)
			}
		case "misaligned.f64", "misaligned.bf16", "origin.f16", "f8_e5m2", "wide.f64", "constant.bf16":
			if same {
				t.Errorf("%s did not move", x.Name)
			}
		default:
			if !float && !same {
				t.Errorf("%s of type %s moved", x.Name, x.DType)
			}
		}
		if x.Name == "patterns.bf16" {
			for j := 0; j < len(old); j += 2 {
				v := binary.LittleEndian.Uint16(old[j:])
				if special := v&0x7FFF == 0 || v&0x7F80 == 0x7F80; special && binary.LittleEndian.Uint16(now[j:]) != v {
					t.Fatalf("pattern %#04x moved", v)
				}
			}
		}
	}
}

// TestCuts checks that blocks are small and begin at whole elements.
func TestCuts(t *testing.T) {
	var list []safetensors.Tensor
	at := uint64(0)
	for i, n := range []uint64{3, 5 << 20, 0, 1, 4 << 20, 4<<20 + 8, 100, 9<<20 + 1, 2 << 20, 2 << 20} {
		list = append(list, safetensors.Tensor{Name: string(rune('a' + i)), DType: tensor.U8, Begin: at, End: at + n})
		at += n
	}
	cuts := cutsOf(list)
	if cuts[0] != 0 || cuts[len(cuts)-1] != at {
		t.Fatalf("cuts %v do not reach from 0 to %d", cuts, at)
	}
	for i := 1; i < len(cuts); i++ {
		if cuts[i] <= cuts[i-1] || cuts[i]-cuts[i-1] > blockSize {
			t.Errorf("block from %d to %d", cuts[i-1], cuts[i])
		}
		for _, x := range list {
			if cuts[i] > x.Begin && cuts[i] < x.End && (cuts[i]-x.Begin)%blockSize != 0 {
				t.Errorf("cut at byte %d of tensor %s", cuts[i]-x.Begin, x.Name)
			}
		}
	}
	if cuts := cutsOf(nil); len(cuts) != 1 {
		t.Errorf("cuts of nothing: %v", cuts)
	}
}

func TestFineTuneErrors(t *testing.T) {
	dir := t.TempDir()
	if err := FineTune(context.Background(), filepath.Join(dir, "no"), dir, Tune{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
	bad := filepath.Join(dir, "bad.safetensors")
	if err := os.WriteFile(bad, []byte("not a header"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.safetensors")
	if err := FineTune(context.Background(), bad, out, Tune{}); !errors.Is(err, safetensors.ErrInvalid) {
		t.Errorf("%v, want safetensors.ErrInvalid", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused base left an output")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	base := filepath.Join(made(t, Options{Model: "edge"}), "model.safetensors")
	if err := FineTune(ctx, base, out, Tune{Sigma: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a cancelled run left an output")
	}
}
