package synth

import (
	"fmt"

	"github.com/wcodec/wcodec/tensor"
)

// deepSeek is the structure of DeepSeek-V3: multi-head latent attention, 256 routed experts and a shared one behind
// three dense layers, linear weights in E4M3 with an F32 scale for each 128 x 128 block, and a layer that predicts a
// second token. A slice of fewer layers has at most half of them dense and no such last layer. Where its shards are cut
// is this package's: the original follows a partition of its own.
type deepSeek struct {
	*builder
	hidden, inter, moe, vocab         uint64
	heads, nope, rope, value, qr, kvr uint64
}

const deepSeekExperts = 256

func buildDeepSeek(b *builder) config {
	heads, _, nope := b.heads(128, 128, 128)
	d := deepSeek{
		builder: b, hidden: b.dim(7168), inter: b.dim(18432), moe: b.dim(2048), vocab: b.dim(129280),
		heads: heads, nope: nope, rope: max(8, nope/2), value: nope, qr: b.dim(1536), kvr: b.dim(512),
	}
	dense, extra := 3, 1
	if b.layers < b.all {
		dense, extra = min(3, b.layers/2), 0
	}
	d.put("model.embed_tokens.weight", embedding, d.vocab, d.hidden)
	for i := range b.layers + extra {
		p := fmt.Sprintf("model.layers.%d.", i)
		if i == b.layers {
			d.put(p+"embed_tokens.weight", embedding, d.vocab, d.hidden)
			d.put(p+"enorm.weight", norm, d.hidden)
			d.put(p+"hnorm.weight", norm, d.hidden)
			d.put(p+"eh_proj.weight", projection, d.hidden, 2*d.hidden)
		}
		d.layer(p, i < dense)
		if i == b.layers {
			d.put(p+"shared_head.norm.weight", norm, d.hidden)
			d.put(p+"shared_head.head.weight", head, d.vocab, d.hidden)
		}
	}
	d.put("model.norm.weight", norm, d.hidden)
	d.put("lm_head.weight", head, d.vocab, d.hidden)
	return config{
		"architectures": []string{"DeepseekV3ForCausalLM"}, "model_type": "deepseek_v3", "attention_bias": false,
		"hidden_size": d.hidden, "intermediate_size": d.inter, "moe_intermediate_size": d.moe,
		"num_hidden_layers": b.layers, "num_nextn_predict_layers": extra, "first_k_dense_replace": dense,
		"num_attention_heads": d.heads, "num_key_value_heads": d.heads, "qk_nope_head_dim": d.nope,
		"qk_rope_head_dim": d.rope, "v_head_dim": d.value, "q_lora_rank": d.qr, "kv_lora_rank": d.kvr,
		"n_routed_experts": deepSeekExperts, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
		"moe_layer_freq": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
		"topk_method": "noaux_tc", "rope_theta": 10000, "rms_norm_eps": 1e-6, "max_position_embeddings": 163840,
		"bos_token_id": 0, "eos_token_id": 1,
		"quantization_config": config{
			"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{blockSide, blockSide},
		},
	}.common(tensor.BF16, d.vocab)
}

func (d *deepSeek) put(name string, src source, shape ...uint64) {
	d.add(name, tensor.BF16, src, shape...)
}

func (d *deepSeek) linear(name string, src source, rows, cols uint64) {
	d.quantised(name, "weight_scale_inv", tensor.F8E4M3, quantBlock, src, rows, cols)
}

func (d *deepSeek) mlp(p string, inter uint64) {
	d.linear(p+"gate_proj", feed, inter, d.hidden)
	d.linear(p+"up_proj", feed, inter, d.hidden)
	d.linear(p+"down_proj", feed, d.hidden, inter)
}

func (d *deepSeek) layer(p string, dense bool) {
	d.linear(p+"self_attn.q_a_proj", attention, d.qr, d.hidden)
	d.put(p+"self_attn.q_a_layernorm.weight", norm, d.qr)
	d.linear(p+"self_attn.q_b_proj", attention, d.heads*(d.nope+d.rope), d.qr)
	d.linear(p+"self_attn.kv_a_proj_with_mqa", attention, d.kvr+d.rope, d.hidden)
	d.put(p+"self_attn.kv_a_layernorm.weight", norm, d.kvr)
	d.linear(p+"self_attn.kv_b_proj", attention, d.heads*(d.nope+d.value), d.kvr)
	d.linear(p+"self_attn.o_proj", projection, d.hidden, d.heads*d.value)
	if dense {
		d.mlp(p+"mlp.", d.inter)
	} else {
		for e := range deepSeekExperts {
			d.mlp(fmt.Sprintf("%smlp.experts.%d.", p, e), d.moe)
		}
		d.put(p+"mlp.gate.weight", projection, deepSeekExperts, d.hidden)
		d.add(p+"mlp.gate.e_score_correction_bias", tensor.F32, bias, deepSeekExperts)
		d.mlp(p+"mlp.shared_experts.", d.moe)
	}
	d.put(p+"input_layernorm.weight", norm, d.hidden)
	d.put(p+"post_attention_layernorm.weight", norm, d.hidden)
}
