package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wcodec/wcodec/store"
)

// indexName is the name that transformers gives to a shard index.
const indexName = "model.safetensors.index.json"

// sideFile is a small JSON file of a checkpoint.
type sideFile struct {
	name  string
	value any
}

// writeSideFiles writes what is in a checkpoint's directory beside the shards.
func writeSideFiles(dir string, shards []Shard, c config) error {
	files := []sideFile{
		{"tokenizer.json", tokenizer()},
		{"tokenizer_config.json", config{
			"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": c["max_position_embeddings"],
			"bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": false,
		}},
		{"special_tokens_map.json", config{"bos_token": "<s>", "eos_token": "</s>"}},
		{"generation_config.json", config{
			"_from_model_config": true, "bos_token_id": c["bos_token_id"], "eos_token_id": c["eos_token_id"],
			"transformers_version": c["transformers_version"],
		}},
	}
	if len(shards) > 1 {
		files = append(files, sideFile{indexName, index(shards)})
	}
	for _, f := range append(files, sideFile{"config.json", c}) {
		b, err := appendJSON(f.value)
		if err == nil {
			err = replaceFile(filepath.Join(dir, f.name), b)
		}
		if err != nil {
			return fmt.Errorf("synth: %s: %w", f.name, err)
		}
	}
	return nil
}

// index is a shard index as transformers writes it.
func index(shards []Shard) any {
	var total uint64
	where := make(map[string]string)
	for i := range shards {
		total += shards[i].DataSize
		for j := range shards[i].Tensors {
			where[shards[i].Tensors[j].Name] = shards[i].File
		}
	}
	return config{"metadata": config{"total_size": total}, "weight_map": where}
}

// tokenizer is a byte-level tokenizer with some merges: what a compressor meets in one, at a fraction of the size.
func tokenizer() any {
	vocab := map[string]int{"<s>": 0, "</s>": 1}
	var merges []string
	add := func(piece string) {
		if _, ok := vocab[piece]; !ok {
			vocab[piece] = len(vocab)
		}
	}
	for c := rune('!'); c < 256+'!'; c++ {
		add(string(c))
	}
	for _, word := range strings.Fields("the of and to in is that for it as was with be by on not he his but at are this") {
		for n := 2; n <= len(word); n++ {
			merges = append(merges, word[:n-1]+" "+word[n-1:n])
			add(word[:n])
		}
	}
	return config{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil,
		"added_tokens": []config{
			{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true},
		},
		"pre_tokenizer": config{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder":       config{"type": "ByteLevel"},
		"model":         config{"type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": false},
	}
}

// appendJSON is indented JSON with sorted keys and a newline, as transformers writes it.
func appendJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, b []byte) error {
	out, err := store.Create(path, true)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := out.Write(b); err != nil {
		return err
	}
	return out.Commit()
}
