package wcodec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/store"
	"github.com/wcodec/wcodec/tensor"
)

// TestResumeComparesTheBytes puts another step of the training, older by its time, in place of what an interrupted run
// packed: size and header are the same.
func TestResumeComparesTheBytes(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	file := filepath.Join(src, "model.safetensors")
	one := build(t, plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, 1)})
	two := build(t, plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, 2)})
	put := func(b []byte) {
		old := time.Now().Add(-time.Hour)
		if err := errors.Join(os.WriteFile(file, b, 0o666), os.Chtimes(file, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	put(one)
	if _, err := CompressDir(t.Context(), dst, src, Options{}); err != nil {
		t.Fatal(err)
	}
	interrupt := func() {
		if err := os.Remove(filepath.Join(dst, IndexName)); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	put(two)
	if _, err := CompressDir(t.Context(), dst, src, Options{}); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), file) {
		t.Fatalf("another original: %v", err)
	}
	put(one)
	st, err := CompressDir(t.Context(), dst, src, Options{})
	if err != nil || st.Resumed != 1 {
		t.Fatalf("the same original: %d resumed, %v", st.Resumed, err)
	}
	interrupt()
	packed := filepath.Join(dst, "model.safetensors.wcodec")
	b, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(packed, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := CompressDir(t.Context(), dst, src, Options{}); !errors.Is(err, ErrExists) {
		t.Fatalf("a damaged packed file: %v", err)
	}
}

// TestShardsThatChangedPlaces swaps two packed shards of equal size: each is sound, and neither is what the index says.
func TestShardsThatChangedPlaces(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	for i, name := range []string{"1.safetensors", "2.safetensors"} {
		b := build(t, plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, uint64(i))})
		if err := os.WriteFile(filepath.Join(src, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := CompressDir(t.Context(), dst, src, Options{}); err != nil {
		t.Fatal(err)
	}
	one, two := filepath.Join(dst, "1.safetensors.wcodec"), filepath.Join(dst, "2.safetensors.wcodec")
	if err := errors.Join(os.Rename(one, one+"x"), os.Rename(two, one), os.Rename(one+"x", two)); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Test(t.Context(), Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("test: %v", err)
	}
	if _, err := DecompressDir(t.Context(), filepath.Join(t.TempDir(), "out"), dst, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("decompress: %v", err)
	}
}

// TestReaderThatFails compresses streams that end in an error, and in errors that are or wrap those of an end: none
// may pass for the end.
func TestReaderThatFails(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(noise(100000, 1)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	cut, err := gzip.NewReader(bytes.NewReader(zipped.Bytes()[:50000]))
	if err != nil {
		t.Fatal(err)
	}
	whole := build(t, plain{"w", tensor.BF16, []uint64{40, 60}, normal(tensor.BF16, 2400, 0.02, 1)})
	failing := func(b []byte, err error) io.Reader { return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(err)) }
	wrapped := fmt.Errorf("connection: %w", io.EOF)
	for name, s := range map[string]Source{
		"cut gzip":                {"a.bin", cut, -1},
		"unexpected EOF":          {"a.bin", failing(noise(1000, 1), io.ErrUnexpectedEOF), -1},
		"unexpected EOF at once":  {"a.bin", failing(nil, io.ErrUnexpectedEOF), -1},
		"unexpected EOF, segment": {"a.bin", failing(make([]byte, 16<<20), io.ErrUnexpectedEOF), -1},
		"wrapped EOF":             {"a.bin", failing(noise(1000, 1), wrapped), -1},
		"wrapped EOF at once":     {"a.bin", failing(nil, wrapped), -1},
		"wrapped EOF, segment":    {"a.bin", failing(make([]byte, 16<<20), wrapped), -1},
		"after the last tensor":   {"m.safetensors", failing(whole, errors.New("gone")), -1},
		"inside a tensor":         {"m.safetensors", failing(whole[:len(whole)-9], wrapped), -1},
		"inside the header":       {"m.safetensors", failing(whole[:20], wrapped), -1},
	} {
		if _, err := Compress(t.Context(), io.Discard, []Source{s}, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSourceThatChanges writes to a source while it is read: cut by less than a page, its map reads as zeros there.
func TestSourceThatChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"shorter": func(p string) error { return os.Truncate(p, 299_900) },
		"longer": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte("more"))
			return errors.Join(err, f.Close())
		},
		"written": func(p string) error { return os.Chtimes(p, time.Time{}, time.Unix(1, 0)) },
	} {
		src := write(t, "a.bin", noise(300_000, 1))
		f, err := os.Open(src)
		if err != nil {
			t.Fatal(err)
		}
		first := write(t, "first", noise(1<<20, 2))
		g, err := os.Open(first)
		if err != nil {
			t.Fatal(err)
		}
		done := false
		_, err = Compress(t.Context(), writerFunc(func(p []byte) (int, error) {
			if !done {
				done = true
				return len(p), change(src)
			}
			return len(p), nil
		}), []Source{{"first", g, -1}, {"a.bin", f, -1}}, Options{Workers: 1})
		if err == nil || !strings.Contains(err.Error(), "a.bin") {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
		g.Close()
	}
}

func TestNamesThatCannotBeKept(t *testing.T) {
	for _, name := range []string{"", "../x", "/x", `a\b`, "a\nb", "\xff", "a//b", strings.Repeat("x", 5000)} {
		n := 0
		w := writerFunc(func(p []byte) (int, error) { n += len(p); return len(p), nil })
		if _, err := Compress(t.Context(), w, []Source{{name, iotest.ErrReader(errors.New("read")), -1}}, Options{}); err == nil || strings.Contains(err.Error(), "read") {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	two := []Source{{"a", strings.NewReader("1"), 1}, {"a", strings.NewReader("2"), 1}}
	if _, err := Compress(t.Context(), io.Discard, two, Options{}); err == nil || !strings.Contains(err.Error(), "a: two inputs") {
		t.Error(err)
	}
}

// TestSlicesOfForeignUnits reads slices of tensors whose units are smaller and larger than their elements.
func TestSlicesOfForeignUnits(t *testing.T) {
	data := noise(24*1000, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for _, d := range []tensor.DType{tensor.U8, tensor.BF16, tensor.F32, tensor.F64} {
		for _, g := range []tensor.Geometry{
			{Unit: "U8", UnitSize: 1, Rows: 1, Cols: 24000, ChunkElems: 1000, SegElems: 5000},
			{Unit: "BF16", UnitSize: 2, Rows: 1, Cols: 12000, ChunkElems: 77, SegElems: 770},
			{Unit: "F64", UnitSize: 8, Rows: 1, Cols: 3000, ChunkElems: 700, SegElems: 1400},
			{Unit: "F64", UnitSize: 8, Rows: 10, Cols: 300, TileRows: 3, ChunkElems: 256, SegElems: 900},
			{Unit: "U8", UnitSize: 1, Rows: 50, Cols: 480, TileRows: 7, ChunkElems: 300, SegElems: 3360},
		} {
			shape := []uint64{10, 4, 5, 120 / uint64(d.Bits()/8)}
			tt := open(t, foreign(t, d, shape, g, data)).Tensors()[0]
			for range 60 {
				ranges := make([]Range, len(shape))
				for i, n := range shape {
					a, b := r.Uint64N(n+1), r.Uint64N(n+1)
					ranges[i] = Range{min(a, b), max(a, b)}
				}
				s, err := tt.Slice(ranges...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if want := sliceOf(data, shape, ranges, d.Bits()/8); !bytes.Equal(got, want) {
					t.Fatalf("%s in %v: %v: %d bytes, want %d", d, g, ranges, len(got), len(want))
				}
			}
		}
	}
}

// sliceOf is the plain way to a slice.
func sliceOf(data []byte, shape []uint64, ranges []Range, width int) []byte {
	if len(shape) == 0 {
		return data[:width]
	}
	step := len(data) / int(shape[0])
	var out []byte
	for i := ranges[0].Start; i < ranges[0].Stop; i++ {
		part := data[int(i)*step : int(i+1)*step]
		if len(shape) > 1 {
			part = sliceOf(part, shape[1:], ranges[1:], width)
		}
		out = append(out, part...)
	}
	return out
}

// foreign is a file of one tensor, stored raw, in a geometry that this version's writer does not choose.
func foreign(t *testing.T, d tensor.DType, shape []uint64, g tensor.Geometry, data []byte) []byte {
	t.Helper()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := format.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	raw := build(t, plain{"w", d, shape, data})
	m := format.Member{Name: "m", Kind: format.KindSafetensors, Size: uint64(len(raw))}
	if m.Header, err = w.MemberHeader(raw[:len(raw)-len(data)]); err != nil {
		t.Fatal(err)
	}
	x := format.Tensor{Name: "w", DType: d, Shape: shape, Length: uint64(len(data)), Geometry: g}
	digest := format.NewDigest()
	for no := range g.Segments() {
		first, elems := g.SegmentRange(no)
		part := data[first*uint64(g.UnitSize) : (first+elems)*uint64(g.UnitSize)]
		var entries []format.IndexEntry
		var pieces [][]byte
		for _, c := range g.AppendChunks(nil, no) {
			units := bytes.Clone(c.Gather(make([]byte, c.Elems()*g.UnitSize), part, g.UnitSize))
			sum := checksum.Sum64(units)
			digest.Add(sum)
			entries = append(entries, format.IndexEntry{Length: uint32(len(units)), Raw: true, Stored: sum, Decoded: sum})
			pieces = append(pieces, append(units, make([]byte, -len(units)&15)...))
		}
		seg, err := w.Segment(x.Length, 0, nil, entries, pieces)
		if err != nil {
			t.Fatal(err)
		}
		x.Segments = append(x.Segments, seg)
	}
	x.Digest = digest.Sum(x.Length, g)
	m.Tensors = []format.Tensor{x}
	if err := w.Finish([]format.Member{m}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBuffersOutliveTheCollector takes back a buffer after the collector ran: were it thrown away, segments as large as
// the format allows would take several times the memory that is in use.
func TestBuffersOutliveTheCollector(t *testing.T) {
	var p bufferPool
	first := p.get(1 << 20)
	p.put(first)
	for range 3 {
		runtime.GC()
	}
	if again := p.get(1 << 19); &again[0] != &first[0] {
		t.Error("a buffer that was given back is not used again")
	}
	if p.put(first); len(p.get(2<<20)) != 2<<20 {
		t.Error("a buffer that is too small was used")
	}
}

// TestWhatShrankIsNamed cuts a mapped file while it is read: the error says which file and tensor.
func TestWhatShrankIsNamed(t *testing.T) {
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
	tt := r.Tensors()[0]
	err = guarded(tt.label, func() error {
		v, err := r.file.Map(0, r.Size())
		if err != nil {
			return err
		}
		defer v.Close()
		if err := os.Truncate(packed, 0); err != nil {
			return err
		}
		return errors.New(string(v.Bytes()[:1]))
	})
	if !errors.Is(err, store.ErrFault) || !strings.Contains(err.Error(), packed) || !strings.Contains(err.Error(), tt.Name()) {
		t.Errorf("packed file: %v", err)
	}
}
