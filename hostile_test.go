package wcodec

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
)

// small is a file of a few kilobytes that has every kind of section: a packed header, coded and raw chunks, tables,
// padding, a blob.
func small(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	file := build(t,
		plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, 1)},
		plain{"f", tensor.F32, []uint64{500}, normal(tensor.F32, 500, 0.02, 2)},
		plain{"odd", tensor.U8, []uint64{5}, []byte{1, 2, 3, 4, 5}},
		plain{"z", tensor.BF16, []uint64{3000}, make([]byte, 6000)})
	file = append(file, "trailing"...)
	_, err := Compress(t.Context(), &out, []Source{
		{"m.safetensors", bytes.NewReader(file), -1},
		{"config.json", strings.NewReader(strings.Repeat(`{"hidden_size": 4096} `, 30)), -1},
	}, Options{KeepTrailing: true})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// check opens b and tests it; a panic fails the test by itself.
func check(t testing.TB, b []byte) error {
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	_, err = r.Test(t.Context(), Options{Workers: 1})
	return err
}

func TestEveryTruncationIsFound(t *testing.T) {
	whole := small(t)
	if err := check(t, whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := check(t, whole[:n:n]); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	for _, more := range []string{"\x00", "x", strings.Repeat("\x00", 5000)} {
		if err := check(t, append(bytes.Clone(whole), more...)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes more: %v", len(more), err)
		}
	}
}

func TestAFlippedBitInEveryByteIsFound(t *testing.T) {
	whole := small(t)
	for i := range whole {
		bit := byte(1) << rand.IntN(8)
		whole[i] ^= bit
		if err := check(t, whole); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("bit %#x of byte %d: %v", bit, i, err)
		}
		whole[i] ^= bit
	}
}

// TestDamageStaysWithItsTensor flips bits in the data of one tensor: the others still read, and what reads is right.
func TestDamageStaysWithItsTensor(t *testing.T) {
	file := checkpoint(t)
	packed := pack(t, "m.safetensors", file, Options{})
	r := open(t, packed)
	bad := r.Tensors()[0]
	good := r.Tensors()[1]
	want, err := good.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seg := bad.t.Segments[0]
	for range 50 {
		at := seg.Offset + rand.Uint64N(seg.StoredLen())
		packed[at] ^= 1
		if _, err := r.Test(t.Context(), Options{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), bad.Name()) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if b, err := good.Read(t.Context()); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("the tensor beside does not read: %v", err)
		}
		packed[at] ^= 1
	}
}

func TestUnknownCodeFailsItsTensorAlone(t *testing.T) {
	data := []byte("twelve bytes")
	list := []safetensors.Tensor{{Name: "a", DType: tensor.U8, Shape: []uint64{12}, End: 12}, {Name: "b", DType: tensor.U8, Shape: []uint64{12}, End: 12}}
	b := byHand(t, list, [][]byte{data, data}, []uint8{77, 0}, list)
	r := open(t, b)
	if got, err := r.Tensors()[1].Read(t.Context()); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("b: %q, %v", got, err)
	}
	_, err := r.Tensors()[0].Read(t.Context())
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("a: %v", err)
	}
	if codes := r.Tensors()[0].Codes(); len(codes) != 1 || codes[0] != "unknown-77" {
		t.Fatalf("codes %v", codes)
	}
}

func TestDirectoryThatIsNotTheHeaders(t *testing.T) {
	data := [][]byte{[]byte("twelve bytes"), []byte("TWELVE BYTES")}
	list := []safetensors.Tensor{{Name: "a", DType: tensor.U8, Shape: []uint64{12}, End: 12}, {Name: "b", DType: tensor.U8, Shape: []uint64{12}, End: 12}}
	for name, change := range map[string]func(h []safetensors.Tensor){
		"name":  func(h []safetensors.Tensor) { h[1].Name = "c" },
		"dtype": func(h []safetensors.Tensor) { h[1].DType = tensor.I8 },
		"shape": func(h []safetensors.Tensor) { h[1].Shape = []uint64{3, 4} },
	} {
		header := append([]safetensors.Tensor(nil), list...)
		change(header)
		if err := check(t, byHand(t, list, data, []uint8{0, 0}, header)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := check(t, byHand(t, list, data, []uint8{0, 0}, list)); err != nil {
		t.Error(err)
	}
}

// byHand writes a file of one-chunk tensors with the codes given, whose header lists other tensors.
func byHand(t *testing.T, list []safetensors.Tensor, data [][]byte, codes []uint8, header []safetensors.Tensor) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := format.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	safetensors.Place(list)
	safetensors.Place(header)
	raw, err := safetensors.AppendHeader(nil, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := format.Member{Name: "m", Kind: format.KindSafetensors, Size: uint64(len(raw))}
	if m.Header, err = w.MemberHeader(raw); err != nil {
		t.Fatal(err)
	}
	for i, x := range list {
		g := tensor.Of(x.DType, x.Shape, x.Size())
		sum := checksum.Sum64(data[i])
		seg, err := w.Segment(x.Size(), codes[i], nil, []format.IndexEntry{{Length: uint32(x.Size()), Raw: codes[i] == 0, Stored: sum, Decoded: sum}}, [][]byte{data[i]})
		if err != nil {
			t.Fatal(err)
		}
		d := format.NewDigest()
		d.Add(sum)
		m.Tensors = append(m.Tensors, format.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Begin: x.Begin, Length: x.Size(),
			Geometry: g, Segments: []format.Segment{seg}, Digest: d.Sum(x.Size(), g)})
		m.Size += x.Size()
	}
	if err := w.Finish([]format.Member{m}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestFileThatShrinks truncates a mapped file while it is open, which must be an error and not a signal.
func TestFileThatShrinks(t *testing.T) {
	src := write(t, "model.safetensors", checkpoint(t))
	packed := src + ".wcodec"
	if _, err := CompressFile(t.Context(), packed, []string{src}, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(packed, 8192); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Test(t.Context(), Options{}); err == nil {
		t.Fatal("a file that shrank passes its test")
	}
	// The source shrinks between its header and its data: when the first bytes are written, most of it is not yet read. A
	// busy machine may have read all of it by then, so there is more than one try.
	for range 20 {
		if err := compressShrinking(t, src, checkpoint(t)); err != nil {
			return
		}
	}
	t.Fatal("a source that shrank compresses")
}

func compressShrinking(t *testing.T, src string, content []byte) error {
	if err := os.WriteFile(src, content, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shrunk := false
	_, err = Compress(t.Context(), writerFunc(func(p []byte) (int, error) {
		if !shrunk {
			shrunk = true
			return len(p), os.Truncate(src, 100000)
		}
		return len(p), nil
	}), []Source{{"model.safetensors", f, -1}}, Options{Workers: 1})
	return err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestSafetensorsThatLie compresses broken headers: the error says corrupt, and nothing panics.
func TestSafetensorsThatLie(t *testing.T) {
	good := build(t, plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, 1)})
	for name, b := range map[string][]byte{
		"empty":      {},
		"short":      good[:7],
		"truncated":  good[:len(good)-2],
		"trailing":   append(bytes.Clone(good), 1, 2, 3),
		"huge":       append([]byte{0x3c, 0, 0, 0, 0, 0xff, 0xff, 0xff}, good[8:]...),
		"not object": append([]byte{4, 0, 0, 0, 0, 0, 0, 0}, "[1] "...),
	} {
		for _, size := range []int64{int64(len(b)), -1} {
			var out bytes.Buffer
			_, err := Compress(t.Context(), &out, []Source{{"m.safetensors", bytes.NewReader(b), size}}, Options{})
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "m.safetensors") {
				t.Errorf("%s, size %d: %v", name, size, err)
			}
		}
		// The same bytes under another name, or asked for as bytes, are a blob, unless they are a whole safetensors file.
		var out bytes.Buffer
		if _, err := Compress(t.Context(), &out, []Source{{"m.safetensors", bytes.NewReader(b), -1}}, Options{Blob: true}); err != nil {
			t.Errorf("%s as a blob: %v", name, err)
		}
		var got bytes.Buffer
		if _, err := open(t, out.Bytes()).Members()[0].Decompress(t.Context(), &got, Options{}); err != nil || !bytes.Equal(got.Bytes(), b) {
			t.Errorf("%s as a blob: %v", name, err)
		}
	}
}

func TestUnitsOfAnotherSizeThanTheirType(t *testing.T) {
	for _, c := range []struct {
		unit tensor.DType
		size int
		code codec.ID
		want error
	}{
		{tensor.BF16, 2, codec.Rans, nil}, {tensor.BF16, 4, codec.Rans, ErrCorrupt}, {tensor.F4, 1, codec.Rans, ErrCorrupt},
		{"NEW", 1, codec.Rans, nil}, {"NEW", 2, codec.Rans, ErrUnsupported}, {"NEW", 2, codec.Raw, nil}, {tensor.F64, 1, codec.Zstd, nil},
	} {
		s := &segment{seg: &format.Segment{Code: uint8(c.code)}, g: tensor.Geometry{Unit: c.unit, UnitSize: c.size}}
		if err := s.checkUnit(); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s of %d bytes in code %d: %v", c.unit, c.size, c.code, err)
		}
	}
}
