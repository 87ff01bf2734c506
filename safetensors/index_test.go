package safetensors

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/wcodec/wcodec/tensor"
)

func TestParseIndex(t *testing.T) {
	raw := `{"metadata":{"x":[1,{}],"total_size":1.6e10},"other":null,
		"weight_map":{"c":"m-2.safetensors","a":"m-1.safetensors","\u0062":"m-2.safetensors"}}` + "\n"
	x, err := ParseIndex([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if string(x.Raw) != raw || x.TotalSize != 16e9 || !reflect.DeepEqual(x.Shards, []string{"m-1.safetensors", "m-2.safetensors"}) ||
		!reflect.DeepEqual(x.Tensors, []Placement{{"c", 1}, {"a", 0}, {"b", 1}}) {
		t.Fatalf("%+v", x)
	}
	if s, ok := x.Shard("b"); !ok || s != "m-2.safetensors" {
		t.Error(s, ok)
	}
	if s, ok := x.Shard("d"); ok {
		t.Error(s)
	}
}

func TestTotalSize(t *testing.T) {
	for text, want := range map[string]int64{
		`{"total_size":5}`: 5, `{"total_size":0}`: 0, `{"total_size":5.5}`: -1, `{"total_size":-5}`: -1, `{"total_size":1e30}`: -1,
		`{"total_size":"5"}`: -1, `{"total_size":null}`: -1, `{}`: -1, `null`: -1, `[{"total_size":5}]`: -1, `{"total_size":true}`: -1,
	} {
		x, err := ParseIndex([]byte(`{"weight_map":{},"metadata":` + text + `}`))
		if err != nil || x.TotalSize != want {
			t.Errorf("%s: %+v, %v", text, x, err)
		}
	}
}

func TestParseIndexRefuses(t *testing.T) {
	shard := func(s string) string { return `{"weight_map":{"a":"` + s + `"}}` }
	for name, text := range map[string]string{
		"empty": ``, "array": `[]`, "no map": `{}`, "null map": `{"weight_map":null}`, "array map": `{"weight_map":[]}`,
		"number": `{"weight_map":{"a":1}}`, "two maps": `{"weight_map":{},"weight_map":{}}`,
		"two metadata": `{"metadata":{},"weight_map":{},"metadata":{}}`, "metadata": `{"metadata":tru,"weight_map":{}}`,
		"tensor twice": `{"weight_map":{"a":"x","\u0061":"x"}}`, "trailing": `{"weight_map":{}} x`, "UTF-8": "{\"weight_map\":{\"\xff\":\"x\"}}",
		"no name": shard(``), "dot": shard(`.`), "dots": shard(`..`), "up": shard(`../x`), "down": shard(`d/x`), "absolute": shard(`/etc/passwd`),
		"backslash": shard(`..\\x`), "escaped": shard(`..\u002fx`), "NUL": shard(`x\u0000`), "drive": shard(`C:x`), "slash": shard(`x/`),
	} {
		if x, err := ParseIndex([]byte(text)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "shard index") {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	if _, err := ParseIndex(make([]byte, MaxHeader+1)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	x, err := ParseIndex([]byte(`{"weight_map":{"a":"1","b":"1","c":"2","d":"2","e":"3"}}`))
	if err != nil {
		t.Fatal(err)
	}
	shard := func(names ...string) *Header {
		h := &Header{}
		for _, name := range names {
			h.Tensors = append(h.Tensors, Tensor{Name: name, DType: tensor.U8})
		}
		return h
	}
	whole := map[string]*Header{"1": shard("a", "b"), "2": shard("d", "c"), "3": shard("e")}
	if p := Check(x, whole); p != nil || ProblemsError(p) != nil {
		t.Fatal(p)
	}
	got := Check(x, map[string]*Header{"1": shard("a", "c"), "2": shard("d", "new"), "4": shard("e")})
	want := []Problem{
		{ShardMissing, "3", ""}, {ShardExtra, "4", ""}, {TensorMissing, "1", "b"}, {TensorMissing, "2", "c"},
		{TensorExtra, "1", "c"}, {TensorExtra, "2", "new"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%v", got)
	}
	err = ProblemsError(got)
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, fact := range []string{`"3"`, `"4"`, `"b"`, "3 more"} {
		if !strings.Contains(err.Error(), fact) {
			t.Errorf("%v lacks %s", err, fact)
		}
	}
}
