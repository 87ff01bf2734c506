package synth

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// TestPlanFacts holds the plans to what is publicly known of the models: numbers of tensors and shards, and the sizes
// that their shard indexes and file listings state.
func TestPlanFacts(t *testing.T) {
	for _, c := range []struct {
		model           string
		shards, tensors int
		size            uint64
	}{
		{"llama-2-7b", 2, 323, 13476835328}, // with the inverse frequencies of 32 layers
		{"llama-3-8b", 4, 291, 16060522496},
		{"llama-3-70b", 30, 723, 141107412992},
		{"qwen3-30b-a3b", 16, 18867, 61064245248},
		{"tinyllama-f32", 1, 201, 4400193536},
		{"pythia-410m", 1, 364, 911331760},
		{"gpt2", 1, 160, 548090880},
	} {
		shards, err := Plan(Options{Model: c.model})
		if err != nil {
			t.Fatal(err)
		}
		n, size := 0, uint64(0)
		for _, s := range shards {
			n += len(s.Tensors)
			size += s.DataSize
		}
		if len(shards) != c.shards || n != c.tensors || size != c.size {
			t.Errorf("%s: %d tensors, %d bytes in %d shards; want %d, %d in %d", c.model, n, size, len(shards),
				c.tensors, c.size, c.shards)
		}
	}
}

// TestDeepSeekSize compares with the original: 91,991 tensors, and 163 files of 688,586,727,753 bytes in all, headers
// included, whose lengths depend on where the shards are cut.
func TestDeepSeekSize(t *testing.T) {
	shards, err := Plan(Options{Model: "deepseek-fp8"})
	if err != nil {
		t.Fatal(err)
	}
	n, size := 0, uint64(0)
	for i := range shards {
		h, err := shards[i].Header()
		if err != nil {
			t.Fatal(err)
		}
		n += len(shards[i].Tensors)
		size += uint64(len(h)) + shards[i].DataSize
	}
	if diff := int64(size) - 688586727753; n != 91991 || diff < -1e6 || diff > 1e6 {
		t.Errorf("%d tensors in %d bytes", n, size)
	}
}

// TestShardCuts holds the cuts to what the originals show: Llama-3-8B ends its second shard in the middle of layer 20,
// and the shards of Qwen3-30B-A3B hold these numbers of tensors.
func TestShardCuts(t *testing.T) {
	shards, err := Plan(Options{Model: "llama-3-8b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"model.embed_tokens.weight": 0, "model.layers.8.mlp.down_proj.weight": 0, "model.layers.9.self_attn.q_proj.weight": 1,
		"model.layers.20.mlp.gate_proj.weight": 1, "model.layers.20.self_attn.o_proj.weight": 1,
		"model.layers.20.mlp.up_proj.weight": 2, "model.layers.20.input_layernorm.weight": 2, "lm_head.weight": 3,
	} {
		if got := slices.IndexFunc(shards, func(s Shard) bool {
			return slices.ContainsFunc(s.Tensors, func(t Tensor) bool { return t.Name == name })
		}); got != want {
			t.Errorf("%s is in shard %d, want %d", name, got, want)
		}
	}
	if shards, err = Plan(Options{Model: "qwen3-30b-a3b"}); err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, s := range shards {
		counts = append(counts, len(s.Tensors))
	}
	want := []int{1063, 1262, 1258, 1262, 1262, 1262, 1262, 1258, 1262, 1262, 1262, 1260, 1256, 1262, 1262, 152}
	if !slices.Equal(counts, want) {
		t.Errorf("shards of %v tensors, want %v", counts, want)
	}
}

// find returns a tensor of a plan.
func find(t testing.TB, o Options, name string) *Tensor {
	t.Helper()
	shards, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		for i := range s.Tensors {
			if s.Tensors[i].Name == name {
				return &s.Tensors[i]
			}
		}
	}
	t.Fatalf("%s has no tensor %s", o.Model, name)
	return nil
}

func TestShapes(t *testing.T) {
	for _, c := range []struct{ model, name, want string }{
		{"llama-3-8b", "model.layers.31.mlp.down_proj.weight", "BF16 [4096 14336]"},
		{"llama-3-8b", "model.layers.0.self_attn.k_proj.weight", "BF16 [1024 4096]"},
		{"llama-2-7b", "model.layers.0.self_attn.rotary_emb.inv_freq", "F16 [64]"},
		{"llama-3-70b", "model.layers.79.self_attn.q_proj.weight", "BF16 [8192 8192]"},
		{"qwen3-30b-a3b", "model.layers.47.mlp.experts.127.down_proj.weight", "BF16 [2048 768]"},
		{"qwen3-30b-a3b", "model.layers.0.self_attn.q_proj.weight", "BF16 [4096 2048]"},
		{"deepseek-fp8", "model.layers.3.mlp.experts.255.gate_proj.weight", "F8_E4M3 [2048 7168]"},
		{"deepseek-fp8", "model.layers.3.mlp.experts.255.gate_proj.weight_scale_inv", "F32 [16 56]"},
		{"deepseek-fp8", "model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv", "F32 [5 56]"},
		{"deepseek-fp8", "model.layers.60.self_attn.q_b_proj.weight", "F8_E4M3 [24576 1536]"},
		{"deepseek-fp8", "model.layers.61.eh_proj.weight", "BF16 [7168 14336]"},
		{"tinyllama-int8", "model.layers.21.mlp.up_proj.weight", "I8 [5632 2048]"},
		{"tinyllama-int8", "model.layers.21.mlp.up_proj.weight_scale", "F32 [5632 1]"},
		{"pythia-410m", "gpt_neox.layers.0.attention.bias", "U8 [1 1 2048 2048]"},
		{"gpt2", "h.0.attn.c_attn.weight", "F32 [768 2304]"},
	} {
		x := find(t, Options{Model: c.model}, c.name)
		if got := fmt.Sprint(x.DType, " ", x.Shape); got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.model, c.name, got, c.want)
		}
	}
}

// TestPlanOrder holds the order in a shard to the reference writer's: by falling type, then by name, without holes.
func TestPlanOrder(t *testing.T) {
	shards, err := Plan(Options{Model: "deepseek-fp8", Layers: 4, Shrink: 32})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		end := uint64(0)
		for i := range s.Tensors {
			x := &s.Tensors[i]
			if x.Offset != end {
				t.Fatalf("%s: tensor %s begins at %d, want %d", s.File, x.Name, x.Offset, end)
			}
			end += x.Size
			if i == 0 {
				continue
			}
			before := &s.Tensors[i-1]
			if rank(before.DType) < rank(x.DType) || before.DType == x.DType && before.Name >= x.Name {
				t.Fatalf("%s: %s %s stands before %s %s", s.File, before.Name, before.DType, x.Name, x.DType)
			}
		}
		if end != s.DataSize {
			t.Fatalf("%s: tensors end at %d of %d", s.File, end, s.DataSize)
		}
	}
}

// TestShrink checks that every model shrinks by odd and even numbers, and that the tensors' names stay.
func TestShrink(t *testing.T) {
	for _, model := range Models() {
		if model == "edge" || model == "tiny" {
			continue
		}
		var names []string
		for _, shrink := range []int{0, 1, 2, 3, 16, 100} {
			o := Options{Model: model, Layers: 2, Shrink: shrink}
			shards, err := Plan(o)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, s := range shards {
				for _, x := range s.Tensors {
					list = append(list, x.Name)
					if x.Size == 0 {
						t.Errorf("%s shrunk by %d: tensor %s %v is empty", model, shrink, x.Name, x.Shape)
					}
				}
			}
			slices.Sort(list)
			if names != nil && !reflect.DeepEqual(list, names) {
				t.Errorf("%s shrunk by %d has other tensors", model, shrink)
			}
			names = list
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want error
	}{
		{Options{}, ErrModel},
		{Options{Model: "llama-4"}, ErrModel},
		{Options{Model: "llama-3-8b", Layers: 33}, ErrRange},
		{Options{Model: "llama-3-8b", Layers: -1}, ErrRange},
		{Options{Model: "llama-3-8b", Shrink: -2}, ErrRange},
		{Options{Model: "llama-3-8b", Shrink: 1 << 20}, ErrRange},
		{Options{Model: "edge", Layers: 1}, ErrRange},
	} {
		if _, err := Plan(c.o); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.o, err, c.want)
		}
	}
}
