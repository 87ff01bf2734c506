package synth

import (
	"fmt"

	"github.com/wcodec/wcodec/tensor"
)

// Where the values of a model's tensors come from. See "Values" in the package comment.
var (
	projection = source{law: lawNormal, lo: 0.015, hi: 0.02, tau: 0.25, wide: true}   // v, o
	feed       = source{law: lawNormal, lo: 0.0175, hi: 0.02, tau: 0.25, wide: true}  // gate, up, down
	attention  = source{law: lawStudent, lo: 0.02, hi: 0.035, skew: true, wide: true} // q, k
	embedding  = source{law: lawNormal, lo: 0.015, hi: 0.015, wide: true}
	head       = source{law: lawNormal, lo: 0.02, hi: 0.02, wide: true}
	norm       = source{law: lawNear1, lo: 0.05, hi: 0.1}
	bias       = source{law: lawNormal, lo: 0.01, hi: 0.03}
)

// llama is a model of the Llama kind.
type llama struct {
	dtype                               tensor.DType
	cast                                bool // values are BF16 before they take dtype
	int8                                bool // projections are I8 with a scale for each row
	rotary                              bool // the layers carry their inverse frequencies, as older checkpoints do
	hidden, inter, heads, kv, dh, vocab uint64
	positions                           int
	theta, eps                          float64
	bos, eos                            int
}

var (
	llama2 = llama{
		dtype: tensor.F16, cast: true, rotary: true, hidden: 4096, inter: 11008, heads: 32, kv: 32, dh: 128,
		vocab: 32000, positions: 4096, theta: 10000, eps: 1e-5, bos: 1, eos: 2,
	}
	llama3Small = llama{
		dtype: tensor.BF16, hidden: 4096, inter: 14336, heads: 32, kv: 8, dh: 128,
		vocab: 128256, positions: 8192, theta: 500000, eps: 1e-5, bos: 128000, eos: 128001,
	}
	llama3Large = llama{
		dtype: tensor.BF16, hidden: 8192, inter: 28672, heads: 64, kv: 8, dh: 128,
		vocab: 128256, positions: 8192, theta: 500000, eps: 1e-5, bos: 128000, eos: 128001,
	}
	tinyLlamaF32 = llama{
		dtype: tensor.F32, cast: true, hidden: 2048, inter: 5632, heads: 32, kv: 4, dh: 64,
		vocab: 32000, positions: 2048, theta: 10000, eps: 1e-5, bos: 1, eos: 2,
	}
	tinyLlamaInt8 = llama{
		dtype: tensor.BF16, int8: true, hidden: 2048, inter: 5632, heads: 32, kv: 4, dh: 64,
		vocab: 32000, positions: 2048, theta: 10000, eps: 1e-5, bos: 1, eos: 2,
	}
)

func (l *llama) build(b *builder) config {
	heads, kv, dh := b.heads(l.heads, l.kv, l.dh)
	hidden, inter, vocab := b.dim(l.hidden), b.dim(l.inter), b.dim(l.vocab)
	put := func(name string, src source, shape ...uint64) {
		src.cast = l.cast
		b.add(name, l.dtype, src, shape...)
	}
	linear := func(name string, src source, rows, cols uint64) {
		if l.int8 {
			b.quantised(name, "weight_scale", tensor.I8, quantRow, src, rows, cols)
			return
		}
		put(name+".weight", src, rows, cols)
	}
	put("model.embed_tokens.weight", embedding, vocab, hidden)
	for i := range b.layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		linear(p+"self_attn.q_proj", attention, heads*dh, hidden)
		linear(p+"self_attn.k_proj", attention, kv*dh, hidden)
		linear(p+"self_attn.v_proj", projection, kv*dh, hidden)
		linear(p+"self_attn.o_proj", projection, hidden, heads*dh)
		if l.rotary {
			b.add(p+"self_attn.rotary_emb.inv_freq", l.dtype, source{law: lawRotary, word: uint64(l.theta)}, dh/2)
		}
		linear(p+"mlp.gate_proj", feed, inter, hidden)
		linear(p+"mlp.up_proj", feed, inter, hidden)
		linear(p+"mlp.down_proj", feed, hidden, inter)
		put(p+"input_layernorm.weight", norm, hidden)
		put(p+"post_attention_layernorm.weight", norm, hidden)
	}
	put("model.norm.weight", norm, hidden)
	put("lm_head.weight", head, vocab, hidden)
	c := config{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "attention_bias": false,
		"hidden_size": hidden, "intermediate_size": inter, "num_hidden_layers": b.layers,
		"num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dh,
		"rope_theta": l.theta, "rms_norm_eps": l.eps, "max_position_embeddings": l.positions,
		"bos_token_id": l.bos, "eos_token_id": l.eos,
	}.common(l.dtype, vocab)
	if l.int8 {
		c["quantization_config"] = config{
			"quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed",
			"ignore": []string{"lm_head"},
			"config_groups": config{"group_0": config{
				"targets": []string{"Linear"},
				"weights": config{"num_bits": 8, "type": "int", "symmetric": true, "dynamic": false, "strategy": "channel"},
				"input_activations": config{
					"num_bits": 8, "type": "int", "symmetric": true, "dynamic": true, "strategy": "token",
				},
			}},
		}
	}
	return c
}

// quantised adds a weight of type d and its scales in F32: of each row, or of each block. Weights with block scales were
// trained so, and have no large columns: these would show in the scales alone.
func (b *builder) quantised(name, scaleName string, d tensor.DType, q quant, src source, rows, cols uint64) {
	src.quant = q
	src.wide = src.wide && q != quantBlock
	b.add(name+".weight", d, src, rows, cols)
	of := Tensor{Name: name + ".weight", DType: d, Shape: []uint64{rows, cols}, Size: rows * cols, src: src}
	shape := []uint64{rows, 1}
	if q == quantBlock {
		shape = []uint64{(rows + blockSide - 1) / blockSide, (cols + blockSide - 1) / blockSide}
	}
	b.add(name+"."+scaleName, tensor.F32, source{law: lawScale, of: &of}, shape...)
}

// common adds what all configurations say.
func (c config) common(d tensor.DType, vocab uint64) config {
	c["torch_dtype"] = map[tensor.DType]string{tensor.BF16: "bfloat16", tensor.F16: "float16", tensor.F32: "float32"}[d]
	c["vocab_size"] = vocab
	c["initializer_range"] = 0.02
	c["tie_word_embeddings"] = false
	c["use_cache"] = true
	c["transformers_version"] = "4.51.0"
	return c
}

// buildQwen3 is Qwen3-30B-A3B: 128 experts a layer.
func buildQwen3(b *builder) config {
	const experts = 128
	heads, kv, dh := b.heads(32, 4, 128)
	hidden, inter, vocab := b.dim(2048), b.dim(768), b.dim(151936)
	put := func(name string, src source, shape ...uint64) { b.add(name, tensor.BF16, src, shape...) }
	put("model.embed_tokens.weight", embedding, vocab, hidden)
	for i := range b.layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		put(p+"self_attn.q_proj.weight", attention, heads*dh, hidden)
		put(p+"self_attn.k_proj.weight", attention, kv*dh, hidden)
		put(p+"self_attn.v_proj.weight", projection, kv*dh, hidden)
		put(p+"self_attn.o_proj.weight", projection, hidden, heads*dh)
		put(p+"self_attn.q_norm.weight", norm, dh)
		put(p+"self_attn.k_norm.weight", norm, dh)
		put(p+"mlp.gate.weight", projection, experts, hidden)
		for e := range experts {
			x := fmt.Sprintf("%smlp.experts.%d.", p, e)
			put(x+"gate_proj.weight", feed, inter, hidden)
			put(x+"up_proj.weight", feed, inter, hidden)
			put(x+"down_proj.weight", feed, hidden, inter)
		}
		put(p+"input_layernorm.weight", norm, hidden)
		put(p+"post_attention_layernorm.weight", norm, hidden)
	}
	put("model.norm.weight", norm, hidden)
	put("lm_head.weight", head, vocab, hidden)
	return config{
		"architectures": []string{"Qwen3MoeForCausalLM"}, "model_type": "qwen3_moe", "attention_bias": false,
		"hidden_size": hidden, "intermediate_size": b.dim(6144), "moe_intermediate_size": inter,
		"num_hidden_layers": b.layers, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dh,
		"num_experts": experts, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": true,
		"mlp_only_layers": []int{}, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "max_position_embeddings": 40960,
		"bos_token_id": 151643, "eos_token_id": 151645,
	}.common(tensor.BF16, vocab)
}
