package hostile

// Index is the corpus of shard indexes (model.safetensors.index.json). There is no reference for their verdicts: what
// loaders accept differs.
func Index() []Case {
	shard := func(s string) string { return `{"weight_map":{"a":"` + s + `"}}` }
	var list []Case
	for _, c := range []textCase{
		{name: "good", want: Accept, text: `{"metadata":{"total_size":5},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`},
		{name: "no-tensors", want: Accept, text: `{"weight_map":{}}`},
		{name: "unknown-keys", want: Accept, text: `{"x":[1e3,{"y":null}],"weight_map":{"a":"m"},"metadata":{"total_size":1.5,"z":[]}}`},
		{name: "dots-inside", want: Accept, text: shard(`a..b.safetensors`)},
		{name: "empty-file", want: Invalid, text: ``},
		{name: "array", want: Invalid, text: `[]`},
		{name: "no-map", want: Invalid, text: `{}`},
		{name: "null-map", want: Invalid, text: `{"weight_map":null}`},
		{name: "array-map", want: Invalid, text: `{"weight_map":["a"]}`},
		{name: "shard-number", want: Invalid, text: `{"weight_map":{"a":1}}`},
		{name: "tensor-twice", want: Invalid, text: `{"weight_map":{"a":"m","a":"n"}}`},
		{name: "tensor-twice-escaped", want: Invalid, text: `{"weight_map":{"a":"m","\u0061":"m"}}`},
		{name: "map-twice", want: Invalid, text: `{"weight_map":{},"weight_map":{"a":"m"}}`},
		{name: "trailing", want: Invalid, text: `{"weight_map":{}}{}`},
		{name: "invalid-utf8", want: Invalid, text: "{\"weight_map\":{\"\xff\":\"m\"}}"},
		{name: "shard-empty", want: Invalid, text: shard(``)},
		{name: "shard-dot", want: Invalid, text: shard(`.`)},
		{name: "shard-dot-dot", want: Invalid, text: shard(`..`)},
		{name: "shard-up", want: Invalid, text: shard(`../m.safetensors`)},
		{name: "shard-up-escaped", want: Invalid, text: shard(`..\u002fm.safetensors`)},
		{name: "shard-up-inside", want: Invalid, text: shard(`x/../../m.safetensors`)},
		{name: "shard-down", want: Invalid, text: shard(`x/m.safetensors`)},
		{name: "shard-absolute", want: Invalid, text: shard(`/etc/passwd`)},
		{name: "shard-backslash", want: Invalid, text: shard(`..\\m.safetensors`)},
		{name: "shard-drive", want: Invalid, text: shard(`C:m.safetensors`)},
		{name: "shard-nul", want: Invalid, text: shard(`m\u0000.safetensors`)},
	} {
		list = append(list, Case{Name: c.name, Want: c.want, Data: func() []byte { return []byte(c.text) }})
	}
	return list
}
