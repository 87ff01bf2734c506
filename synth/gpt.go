package synth

import (
	"fmt"

	"github.com/wcodec/wcodec/tensor"
)

// buildGPT2 is the smallest GPT-2 in F32, with the causal masks that its file carries.
func buildGPT2(b *builder) config {
	heads, _, dh := b.heads(12, 12, 64)
	hidden, positions, vocab := b.dim(768), b.dim(1024), b.dim(50257)
	put := func(name string, src source, shape ...uint64) { b.add(name, tensor.F32, src, shape...) }
	linear := func(name string, src source, in, out uint64) {
		put(name+".weight", src, in, out)
		put(name+".bias", bias, out)
	}
	layerNorm := func(name string) {
		put(name+".weight", norm, hidden)
		put(name+".bias", bias, hidden)
	}
	put("wte.weight", embedding, vocab, hidden)
	put("wpe.weight", embedding, positions, hidden)
	for i := range b.layers {
		p := fmt.Sprintf("h.%d.", i)
		layerNorm(p + "ln_1")
		put(p+"attn.bias", source{law: lawMask}, 1, 1, positions, positions)
		linear(p+"attn.c_attn", attention, hidden, 3*heads*dh)
		linear(p+"attn.c_proj", projection, heads*dh, hidden)
		layerNorm(p + "ln_2")
		linear(p+"mlp.c_fc", feed, hidden, 4*hidden)
		linear(p+"mlp.c_proj", feed, 4*hidden, hidden)
	}
	layerNorm("ln_f")
	c := config{
		"architectures": []string{"GPT2LMHeadModel"}, "model_type": "gpt2", "n_embd": hidden, "n_head": heads,
		"n_layer": b.layers, "n_positions": positions, "n_ctx": positions, "layer_norm_epsilon": 1e-5,
		"activation_function": "gelu_new", "bos_token_id": 50256, "eos_token_id": 50256,
	}.common(tensor.F32, vocab)
	c["tie_word_embeddings"] = true
	return c
}

// buildPythia is Pythia-410M, trained and stored in F16, with the buffers that its file carries.
func buildPythia(b *builder) config {
	heads, _, dh := b.heads(16, 16, 64)
	hidden, positions, vocab := b.dim(1024), b.dim(2048), b.dim(50304)
	put := func(name string, src source, shape ...uint64) { b.add(name, tensor.F16, src, shape...) }
	linear := func(name string, src source, rows, cols uint64) {
		put(name+".weight", src, rows, cols)
		put(name+".bias", bias, rows)
	}
	layerNorm := func(name string) {
		put(name+".weight", norm, hidden)
		put(name+".bias", bias, hidden)
	}
	put("gpt_neox.embed_in.weight", embedding, vocab, hidden)
	for i := range b.layers {
		p := fmt.Sprintf("gpt_neox.layers.%d.", i)
		layerNorm(p + "input_layernorm")
		layerNorm(p + "post_attention_layernorm")
		b.add(p+"attention.bias", tensor.U8, source{law: lawMask}, 1, 1, positions, positions)
		put(p+"attention.masked_bias", source{law: lawRepeat, word: 0xFC00}) // -1e9, which in F16 is minus infinity
		put(p+"attention.rotary_emb.inv_freq", source{law: lawRotary, word: 10000}, max(1, dh/8))
		linear(p+"attention.query_key_value", attention, 3*heads*dh, hidden)
		linear(p+"attention.dense", projection, hidden, heads*dh)
		linear(p+"mlp.dense_h_to_4h", feed, 4*hidden, hidden)
		linear(p+"mlp.dense_4h_to_h", feed, hidden, 4*hidden)
	}
	layerNorm("gpt_neox.final_layer_norm")
	put("embed_out.weight", head, vocab, hidden)
	return config{
		"architectures": []string{"GPTNeoXForCausalLM"}, "model_type": "gpt_neox", "hidden_act": "gelu",
		"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": b.layers,
		"num_attention_heads": heads, "rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": true,
		"max_position_embeddings": positions, "layer_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 0,
	}.common(tensor.F16, vocab)
}
