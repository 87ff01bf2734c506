package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wcodec/wcodec/tensor"
	"pgregory.net/rapid"
)

// frame puts the length before a header's JSON.
func frame(json string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(json))), json...)
}

func TestParse(t *testing.T) {
	raw := frame(` {"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[3,15]},` +
		`"__metadata__":{"format":"pt","a\n":"\u00e4"},` +
		`"z":{"shape":[],"x":[{"y":1e3}],"data_offsets":[15,17],"dtype":"I16"},` +
		`"e":{"dtype":"F32","shape":[0,7],"data_offsets":[3,3]},` +
		`"\u0061":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},` +
		`"n":{"dtype":"F5_NEW","shape":[5],"data_offsets":[17,99]}}  `)
	h, err := Parse(append(raw, "data"...), int64(len(raw))+99)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{
		{"a", tensor.U8, []uint64{3}, 0, 3},
		{"e", tensor.F32, []uint64{0, 7}, 3, 3},
		{"b", tensor.BF16, []uint64{2, 3}, 3, 15},
		{"z", tensor.I16, []uint64{}, 15, 17},
		{"n", "F5_NEW", []uint64{5}, 17, 99},
	}
	if !reflect.DeepEqual(h.Tensors, want) {
		t.Errorf("tensors %+v", h.Tensors)
	}
	if m := h.Metadata(); !maps.Equal(m, map[string]string{"format": "pt", "a\n": "ä"}) {
		t.Errorf("metadata %v", m)
	}
	if !bytes.Equal(h.Raw, raw) || h.DataOffset() != uint64(len(raw)) || h.DataSize() != 99 || h.FileSize() != uint64(len(raw))+99 {
		t.Errorf("raw %q, data %d+%d", h.Raw, h.DataOffset(), h.DataSize())
	}
}

func TestFileSize(t *testing.T) {
	raw := frame(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`)
	n := int64(len(raw))
	if _, err := Parse(raw, -1); err != nil {
		t.Error(err)
	}
	if _, err := Parse(raw, n+5); err != nil {
		t.Error(err)
	}
	h, err := Parse(raw, n+12)
	var trailing *TrailingError
	if !errors.Is(err, ErrTrailing) || !errors.Is(err, ErrInvalid) || !errors.As(err, &trailing) || trailing.Bytes != 7 {
		t.Error(err)
	}
	if h == nil || len(h.Tensors) != 2 {
		t.Error("no header with ErrTrailing")
	}
	for size, want := range map[int64]string{n + 4: `"b"`, n + 3: `"b"`, n + 2: `"a"`, n: `"a"`, n - 1: "header", 9: "header", 0: "header"} {
		h, err := Parse(raw, size)
		if h != nil || !errors.Is(err, ErrTruncated) || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

func TestReadHeader(t *testing.T) {
	raw := frame(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}`)
	r := bytes.NewReader(append(bytes.Clone(raw), 1, 2, 3))
	got, h, err := ReadHeader(iotest.OneByteReader(r), -1)
	if err != nil || !bytes.Equal(got, raw) || !bytes.Equal(h.Raw, raw) || r.Len() != 3 {
		t.Fatalf("%q, %d left, %v", got, r.Len(), err)
	}
	for n := range raw {
		got, h, err := ReadHeader(bytes.NewReader(raw[:n]), -1)
		if h != nil || !errors.Is(err, ErrTruncated) || !bytes.Equal(got, raw[:n]) {
			t.Fatalf("%d bytes: %q, %v", n, got, err)
		}
	}
	lost := errors.New("lost")
	if _, _, err := ReadHeader(io.MultiReader(bytes.NewReader(raw[:20]), iotest.ErrReader(lost)), -1); !errors.Is(err, lost) || errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	junk := frame("junk")
	if got, _, err := ReadHeader(bytes.NewReader(append(junk, 'x')), -1); !errors.Is(err, ErrInvalid) || !bytes.Equal(got, junk) {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestLyingLength declares the longest header there can be on a short pipe.
func TestLyingLength(t *testing.T) {
	b := append(binary.LittleEndian.AppendUint64(nil, MaxHeader), "{}"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := ReadHeader(bytes.NewReader(b), -1); !errors.Is(err, ErrTruncated) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 256<<10 {
		t.Fatalf("%d bytes allocated", allocated)
	}
	b = binary.LittleEndian.AppendUint64(nil, MaxHeader+1)
	if raw, _, err := ReadHeader(bytes.NewReader(b), -1); !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrInvalid) || len(raw) != 8 {
		t.Fatal(err)
	}
}

// drawTensors makes tensors that Place and AppendHeader accept.
func drawTensors(t *rapid.T) []Tensor {
	names := rapid.SliceOfNDistinct(rapid.String().Filter(func(s string) bool { return s != metadataKey }), 0, 8, rapid.ID[string]).Draw(t, "names")
	dtypes := []tensor.DType{tensor.BOOL, tensor.F4, tensor.F6E2M3, tensor.U8, tensor.BF16, tensor.F32, tensor.C64, tensor.F64, "", "NEW \"1\""}
	tensors := []Tensor{}
	for _, name := range names {
		x := Tensor{Name: name, DType: rapid.SampledFrom(dtypes).Draw(t, "dtype"), Shape: []uint64{}}
		for range rapid.IntRange(0, 4).Draw(t, "rank") {
			x.Shape = append(x.Shape, 4*rapid.Uint64Range(0, 5).Draw(t, "dim"))
		}
		if len(x.Shape) == 0 && x.DType.Bits()%8 != 0 {
			x.Shape = append(x.Shape, 8)
		}
		if x.DType.Known() {
			size, err := tensor.ByteLen(x.DType, x.Shape)
			if err != nil {
				t.Fatal(err)
			}
			x.End = size
		} else {
			x.End = rapid.Uint64Range(0, 100).Draw(t, "size")
		}
		tensors = append(tensors, x)
	}
	Place(tensors)
	return tensors
}

func TestAppendThenParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tensors := drawTensors(t)
		meta := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		if rapid.Bool().Draw(t, "no metadata") {
			meta = nil
		}
		prefix := rapid.SliceOf(rapid.Byte()).Draw(t, "prefix")
		b, err := AppendHeader(bytes.Clone(prefix), tensors, meta)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, prefix) {
			t.Fatal("prefix changed")
		}
		b = b[len(prefix):]
		if len(b)%8 != 0 {
			t.Fatalf("%d bytes", len(b))
		}
		var data uint64
		if len(tensors) > 0 {
			data = tensors[len(tensors)-1].End
		}
		h, err := Parse(b, int64(len(b))+int64(data))
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if !reflect.DeepEqual(h.Tensors, tensors) || !maps.Equal(h.Metadata(), meta) || !bytes.Equal(h.Raw, b) {
			t.Fatalf("%q:\n%+v\n%+v", b, h.Tensors, tensors)
		}
	})
}

// TestOrderOfJSON shuffles the entries of a header and expects the tensors in the order of their data.
func TestOrderOfJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		entries, want := make([]string, n), make([]string, n)
		for i := range n {
			want[i] = fmt.Sprintf("t%d", i)
			entries[i] = fmt.Sprintf(`"t%d":{"dtype":"U8","shape":[2],"data_offsets":[%d,%d]}`, i, 2*i, 2*i+2)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(n, func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		h, err := Parse(frame("{"+strings.Join(entries, ",")+"}"), -1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if h.Tensors[i].Name != want[i] || h.Tensors[i].Begin != uint64(2*i) {
				t.Fatalf("%+v", h.Tensors)
			}
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	ok := Tensor{"a", tensor.U8, []uint64{2}, 0, 2}
	change := func(f func(*Tensor)) []Tensor {
		x := ok
		f(&x)
		return []Tensor{x}
	}
	cases := map[string][]Tensor{
		"size":     change(func(x *Tensor) { x.End = 3 }),
		"hole":     change(func(x *Tensor) { x.Begin, x.End = 1, 3 }),
		"reserved": change(func(x *Tensor) { x.Name = metadataKey }),
		"name":     change(func(x *Tensor) { x.Name = "\xff" }),
		"dtype":    change(func(x *Tensor) { x.DType = "\xff" }),
		"rank":     change(func(x *Tensor) { x.Shape = append(make([]uint64, MaxRank), 2); x.End = 0 }),
		"twice":    {ok, {"a", tensor.U8, []uint64{1}, 2, 3}},
		"backward": {{"a", "NEW", nil, 0, 2}, {"b", "NEW", nil, 2, 1}},
	}
	for name, tensors := range cases {
		if b, err := AppendHeader([]byte("x"), tensors, nil); !errors.Is(err, ErrInvalid) || string(b) != "x" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := AppendHeader(nil, []Tensor{ok}, map[string]string{"k": "\xff"}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if _, err := AppendHeader(nil, nil, map[string]string{"k": strings.Repeat("x", MaxHeader)}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestLongNamesAreCutInMessages(t *testing.T) {
	raw := frame(`{"` + strings.Repeat("n", 1<<20) + `":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}}`)
	if _, err := Parse(raw, -1); !errors.Is(err, ErrInvalid) || len(err.Error()) > 1000 {
		t.Fatal(len(err.Error()))
	}
}
