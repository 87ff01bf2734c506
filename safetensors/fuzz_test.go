package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wcodec/wcodec/internal/hostile"
	"github.com/wcodec/wcodec/tensor"
)

// node is any JSON value as encoding/json reads it, duplicates kept.
type node struct {
	kind   byte // '{', '[', '"', '0' or 'x' for a literal
	text   string
	keys   []string
	values []*node
}

func readNode(d *json.Decoder) (*node, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := tok.(type) {
	case string:
		return &node{kind: '"', text: x}, nil
	case json.Number:
		return &node{kind: '0', text: x.String()}, nil
	case json.Delim:
		n := &node{kind: byte(x)}
		for d.More() {
			if x == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				n.keys = append(n.keys, key.(string))
			}
			value, err := readNode(d)
			if err != nil {
				return nil, err
			}
			n.values = append(n.values, value)
		}
		_, err = d.Token()
		return n, err
	}
	return &node{kind: 'x'}, nil
}

func (n *node) depth() int {
	most := 0
	for _, v := range n.values {
		most = max(most, v.depth())
	}
	if n.kind == '{' || n.kind == '[' {
		most++
	}
	return most
}

// finite reports whether every number is a finite float64.
func (n *node) finite() bool {
	if n.kind == '0' {
		f, err := strconv.ParseFloat(n.text, 64)
		return err == nil && !math.IsInf(f, 0)
	}
	return !slices.ContainsFunc(n.values, func(v *node) bool { return !v.finite() })
}

func (n *node) naturals() ([]uint64, bool) {
	list := []uint64{}
	for _, v := range n.values {
		x, err := strconv.ParseUint(v.text, 10, 64)
		if v.kind != '0' || err != nil {
			return nil, false
		}
		list = append(list, x)
	}
	return list, n.kind == '['
}

// oracle is the format's rules written for plainness over encoding/json. It returns nil where a header is refused.
func oracle(text []byte) *Header {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := readNode(d)
	if err != nil || root.kind != '{' || root.depth() > maxDepth || !root.finite() {
		return nil
	}
	h := &Header{Tensors: []Tensor{}}
	seen := make(map[string]bool)
	for i, name := range root.keys {
		v := root.values[i]
		if seen[name] {
			return nil
		}
		seen[name] = true
		if name == metadataKey {
			notString := func(v *node) bool { return v.kind != '"' }
			if v.kind == '{' && !slices.ContainsFunc(v.values, notString) || v.kind == 'x' && bytes.Contains(text, []byte("null")) {
				continue
			}
			return nil
		}
		t, ok := oracleTensor(name, v)
		if !ok {
			return nil
		}
		h.Tensors = append(h.Tensors, t)
	}
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int {
		return slices.Compare([]uint64{a.Begin, a.End}, []uint64{b.Begin, b.End})
	})
	var end uint64
	for _, t := range h.Tensors {
		if t.Begin != end {
			return nil
		}
		end = t.End
	}
	return h
}

func oracleTensor(name string, v *node) (t Tensor, ok bool) {
	t.Name = name
	var count [3]int
	if v.kind != '{' {
		return t, false
	}
	for i, key := range v.keys {
		field := v.values[i]
		ok := true
		switch key {
		case "dtype":
			count[0]++
			t.DType, ok = tensor.DType(field.text), field.kind == '"'
		case "shape":
			count[1]++
			t.Shape, ok = field.naturals()
		case "data_offsets":
			count[2]++
			var offsets []uint64
			if offsets, ok = field.naturals(); ok && len(offsets) == 2 {
				t.Begin, t.End = offsets[0], offsets[1]
			} else {
				ok = false
			}
		}
		if !ok {
			return t, false
		}
	}
	if count != [3]int{1, 1, 1} || len(t.Shape) > MaxRank || t.End < t.Begin || t.End > maxOffset {
		return t, false
	}
	if !t.DType.Known() {
		_, err := tensor.Elements(t.Shape)
		return t, err == nil
	}
	size, err := tensor.ByteLen(t.DType, t.Shape)
	return t, err == nil && size == t.Size()
}

// surrogate finds escapes of which encoding/json makes U+FFFD where a half pair stands, so that it is no oracle.
var surrogate = regexp.MustCompile(`(?i)\\u(d[89a-f]|fffd)`)

func FuzzParse(f *testing.F) {
	for _, c := range hostile.Safetensors() {
		if !c.Big {
			f.Add(c.Data())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 {
			return // long inputs teach little and take long to shrink
		}
		checkParse(t, data, int64(len(data)))
		// The same bytes as a header with a right length.
		checkParse(t, hostile.Frame(string(data), ""), -1)
		if len(data) > lengthSize {
			checkParse(t, hostile.Frame(string(data[lengthSize:]), ""), -1)
		}
	})
}

func checkParse(t *testing.T, file []byte, size int64) {
	h, err := Parse(file, size)
	if err != nil && !errors.Is(err, ErrInvalid) {
		t.Fatalf("%v is not ErrInvalid", err)
	}
	raw, streamed, serr := ReadHeader(bytes.NewReader(file), size)
	if !reflect.DeepEqual(streamed, h) || (serr == nil) != (err == nil) || !bytes.HasPrefix(file, raw) {
		t.Fatalf("ReadHeader %+v, %v; Parse %+v, %v", streamed, serr, h, err)
	}
	if size < 0 && !surrogate.Match(file) {
		want := oracle(file[lengthSize:])
		if (want == nil) != (h == nil) {
			t.Fatalf("Parse says %v, the oracle %+v", err, want)
		}
		if h != nil && !reflect.DeepEqual(h.Tensors, want.Tensors) {
			t.Fatalf("Parse %+v, the oracle %+v", h.Tensors, want.Tensors)
		}
	}
	if h == nil {
		if err == nil {
			t.Fatal("neither header nor error")
		}
		return
	}
	if !bytes.HasPrefix(file, h.Raw) {
		t.Fatal("Raw is not what was read")
	}
	again, err := AppendHeader(nil, h.Tensors, h.Metadata())
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	h2, err := Parse(again, int64(len(again))+int64(h.DataSize()))
	if err != nil || !reflect.DeepEqual(h.Tensors, h2.Tensors) || !maps.Equal(h.Metadata(), h2.Metadata()) {
		t.Fatalf("%q parses to %+v, %v", again, h2, err)
	}
}

func FuzzIndex(f *testing.F) {
	for _, c := range hostile.Index() {
		f.Add(c.Data())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ParseIndex(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted what is not JSON")
		}
		var loose struct {
			Map map[string]string `json:"weight_map"`
		}
		// encoding/json matches keys without regard to case, and makes U+FFFD of half pairs.
		exact := !surrogate.Match(data) && len(regexp.MustCompile(`(?i)weight_?map|\\u`).FindAll(data, 2)) == 1
		if err := json.NewDecoder(bytes.NewReader(data)).Decode(&loose); err != nil && exact {
			t.Fatal(err)
		}
		if exact && len(loose.Map) != len(x.Tensors) {
			t.Fatalf("%v and %v", loose.Map, x.Tensors)
		}
		headers := make(map[string]*Header)
		for _, p := range x.Tensors {
			shard := x.Shards[p.Shard]
			if strings.ContainsAny(shard, "/\\\x00") || shard == "" || shard == "." || shard == ".." {
				t.Fatalf("shard %q", shard)
			}
			if found, ok := x.Shard(p.Tensor); !ok || found != shard {
				t.Fatalf("tensor %q: %q, %v", p.Tensor, found, ok)
			}
			if exact && loose.Map[p.Tensor] != shard {
				t.Fatalf("tensor %q is in %q, not in %q", p.Tensor, loose.Map[p.Tensor], shard)
			}
			if headers[shard] == nil {
				headers[shard] = &Header{}
			}
			headers[shard].Tensors = append(headers[shard].Tensors, Tensor{Name: p.Tensor})
		}
		if problems := Check(x, headers); problems != nil {
			t.Fatal(problems)
		}
	})
}

// TestScannerAgainstEncodingJSON runs both over values that no header has, cut at every byte.
func TestScannerAgainstEncodingJSON(t *testing.T) {
	for _, text := range []string{
		` {"a" : [1, -2.5e+3, 0, -0, 1E5, 0.0] , "b":{"c":"\"\\\/\b\f\n\r\t\u00e4","d":null,"":true} ,"x":false}`,
		`[[],{},"",[{}],[[]]] `, `01`, `1.`, `.5`, `-`, `+1`, `1e`, `1e+`, `tru`, `nulll`, `[1,]`, `{"a":1,}`, `{,}`, `{"a"}`, `"\u12g4"`, `"\q"`, "\"\t\"", "[1 2]", "[1\x00]", "\x00",
	} {
		for n := range len(text) + 1 {
			s := scanner{text: text[:n]}
			err := s.skip()
			if err == nil {
				err = s.end()
			}
			if got, want := err == nil, json.Valid([]byte(text[:n])); got != want {
				t.Errorf("%q: %v, encoding/json says %v", text[:n], err, want)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, n := range map[string]int{"300": 300, "90000": 90000} {
		tensors := make([]Tensor, n)
		for i := range tensors {
			tensors[i] = Tensor{Name: "model.layers." + strconv.Itoa(i/300) + ".mlp.experts." + strconv.Itoa(i%300) + ".down_proj.weight", DType: tensor.BF16, Shape: []uint64{4, 8}, End: 64}
		}
		Place(tensors)
		raw, err := AppendHeader(nil, tensors, map[string]string{"format": "pt"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, _, err := ReadHeader(bytes.NewReader(raw), -1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/append", func(b *testing.B) {
			for b.Loop() {
				if _, err := AppendHeader(raw[:0:0], tensors, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
