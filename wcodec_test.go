package wcodec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/tensor"
)

func TestRoundTripByEveryRoute(t *testing.T) {
	want := checkpoint(t)
	src := write(t, "model.safetensors", want)
	var first []byte
	for _, workers := range []int{1, 2, 5} {
		for _, kind := range []string{"file", "stream", "slow stream"} {
			var r io.Reader = bytes.NewReader(want)
			switch kind {
			case "file":
				f, err := os.Open(src)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				r = f
			case "slow stream":
				r = iotest.HalfReader(r)
			}
			var out bytes.Buffer
			stats, err := Compress(t.Context(), &out, []Source{{"model.safetensors", r, -1}}, Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if stats.PlainBytes != int64(len(want)) || stats.StoredBytes != int64(out.Len()) || stats.Tensors != 17 {
				t.Fatalf("stats %+v for %d bytes in, %d out", stats, len(want), out.Len())
			}
			if first == nil {
				first = out.Bytes()
			} else if !bytes.Equal(first, out.Bytes()) {
				t.Fatalf("%d workers from a %s give other bytes", workers, kind)
			}
		}
	}
	r := open(t, first)
	if _, err := r.Test(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := r.Members()[0].Decompress(t.Context(), &got, Options{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Fatal("the stream differs")
	}
	packed := write(t, "model.safetensors.wcodec", first)
	mapped, err := Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	if _, err := mapped.Test(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if h := mustHeader(t, mapped); !bytes.Equal(h, want[:len(h)]) {
		t.Fatal("the header differs")
	}
	back := filepath.Join(t.TempDir(), "back.safetensors")
	if _, err := DecompressFile(t.Context(), back, packed, Options{}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(back); !bytes.Equal(b, want) {
		t.Fatal("the file differs")
	}
	if _, err := r.Members()[0].Verify(t.Context(), bytes.NewReader(want), int64(len(want)), Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestEveryCodeAndLevelRoundTrips(t *testing.T) {
	want := checkpoint(t)
	for _, code := range Codecs() {
		for _, level := range []Level{LevelDefault, LevelFast, LevelDense} {
			r := open(t, pack(t, "m.safetensors", want, Options{Codec: code, Level: level}))
			var got bytes.Buffer
			if _, err := r.Members()[0].Decompress(t.Context(), &got, Options{}); err != nil {
				t.Fatalf("%s level %d: %v", code, level, err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Fatalf("%s level %d: bytes differ", code, level)
			}
		}
	}
}

func TestBlobs(t *testing.T) {
	for _, n := range []int{0, 1, 100, 64 << 10, 512 << 10, 16<<20 - 1, 16 << 20, 16<<20 + 1} {
		want := noise(n, 1)
		b := pack(t, "blob.bin", want, Options{})
		if limit := n/1000 + 512; len(b) > n+limit {
			t.Errorf("%d random bytes became %d", n, len(b))
		}
		var unknown bytes.Buffer
		if _, err := Compress(t.Context(), &unknown, []Source{{"blob.bin", bytes.NewReader(want), -1}}, Options{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(unknown.Bytes(), b) {
			t.Errorf("%d bytes: a stream of unknown length gives other bytes", n)
		}
		r := open(t, b)
		if _, err := r.Test(t.Context(), Options{}); err != nil {
			t.Fatal(n, err)
		}
		var got bytes.Buffer
		if _, err := r.Members()[0].Decompress(t.Context(), &got, Options{}); err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes differ", n)
		}
	}
}

func TestReadAndSlice(t *testing.T) {
	file := checkpoint(t)
	r := open(t, pack(t, "m.safetensors", file, Options{}))
	for _, x := range r.Tensors() {
		whole, err := x.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := uint64(len(file)) - uint64(r.Members()[0].Size()) + uint64(len(mustHeader(t, r))) + x.t.Begin
		if !bytes.Equal(whole, file[begin:begin+x.t.Length]) {
			t.Fatalf("%s differs", x.Name())
		}
		if !x.t.DType.Known() || x.t.DType.Bits()%8 != 0 {
			if _, err := x.Slice(); err == nil {
				t.Fatalf("%s: sliced", x.Name())
			}
			continue
		}
		for range 30 {
			var ranges []Range
			for _, n := range x.Shape()[:rand.IntN(len(x.Shape())+1)] {
				a, b := rand.Uint64N(n+1), rand.Uint64N(n+1)
				ranges = append(ranges, Range{min(a, b), max(a, b)})
			}
			checkSlice(t, x, whole, ranges)
		}
	}
}

func mustHeader(t *testing.T, r *Reader) []byte {
	b, err := r.Members()[0].Header()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkSlice(t *testing.T, x *Tensor, whole []byte, ranges []Range) {
	t.Helper()
	s, err := x.Slice(ranges...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The plainest slicing: every element of the tensor asked whether it is in.
	var want []byte
	width := uint64(x.t.DType.Bits() / 8)
	at := make([]uint64, len(x.Shape()))
	for e := uint64(0); e < x.t.Length/width; e++ {
		in, rest := true, e
		for d := len(at) - 1; d >= 0; d-- {
			at[d], rest = rest%x.Shape()[d], rest/x.Shape()[d]
			if d < len(ranges) && (at[d] < ranges[d].Start || at[d] >= ranges[d].Stop) {
				in = false
			}
		}
		if in {
			want = append(want, whole[e*width:(e+1)*width]...)
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s %v: slice of %d bytes differs from %d", x.Name(), ranges, len(got), len(want))
	}
}

func TestSliceDecodesOnlyItsTiles(t *testing.T) {
	const side = 1024
	r := open(t, pack(t, "m.safetensors", build(t, plain{"w", "BF16", []uint64{side, side}, normal("BF16", side*side, 0.02, 1)}), Options{}))
	w := r.Tensors()[0]
	total := w.t.Segments[0].Chunks
	for _, c := range []struct {
		ranges []Range
		want   int
	}{
		{[]Range{{0, side}}, total},
		{[]Range{{0, side}, {0, 256}}, total / 4},
		{[]Range{{0, 256}}, total / 4},
		{[]Range{{10, 11}, {300, 301}}, 1},
		{[]Range{{0, 512}, {512, 1024}}, total / 4},
	} {
		s, err := w.Slice(c.ranges...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.readInto(t.Context(), make([]byte, s.Size()))
		if err != nil || n != c.want {
			t.Errorf("%v: %d chunks decoded of %d, want %d, %v", c.ranges, n, total, c.want, err)
		}
	}
}

func TestEqualTensorsGiveEqualBytes(t *testing.T) {
	data := normal("BF16", 600*700, 0.02, 1)
	a := pack(t, "m.safetensors", build(t, plain{"w", "BF16", []uint64{600, 700}, data}), Options{})
	b := pack(t, "m.safetensors", build(t,
		plain{"first", "U8", []uint64{77}, noise(77, 1)}, plain{"other", "BF16", []uint64{600, 700}, data}), Options{})
	find := func(b []byte, name string) []byte {
		x, err := open(t, b).Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		s := x.t.Segments[0]
		return b[s.Offset : s.Offset+s.StoredLen()]
	}
	if !bytes.Equal(find(a, "w"), find(b, "other")) {
		t.Fatal("stored bytes differ")
	}
}

func TestCancelledAnywhereLeavesNothing(t *testing.T) {
	src := write(t, "model.safetensors", checkpoint(t))
	packed := src + ".wcodec"
	if _, err := CompressFile(t.Context(), packed, []string{src}, Options{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		stop := int64(rand.IntN(4_000_000))
		o := Options{Workers: 1 + i%3, Progress: func(p Progress) {
			if p.Done >= stop {
				cancel()
			}
		}}
		if i%4 == 0 {
			cancel()
		}
		out := filepath.Join(dir, fmt.Sprint("out", i))
		var err error
		if i%2 == 0 {
			_, err = CompressFile(ctx, out, []string{src}, o)
		} else {
			_, err = DecompressFile(ctx, out, packed, o)
		}
		cancel()
		_, statErr := os.Stat(out)
		if (err == nil) != (statErr == nil) || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, output %v", err, statErr)
		}
		if err == nil {
			os.Remove(out)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
	}
}

func TestWideMatricesTakeFewerWorkers(t *testing.T) {
	for _, c := range []struct{ cols, workers, want int }{{300, 64, 64}, {14336, 64, 22}, {65536, 64, 5}, {65536, 2, 2}} {
		m := &Member{m: &format.Member{}}
		n := uint64(4096 * c.cols * 2)
		m.tensors = []*Tensor{{m: m, t: &format.Tensor{Length: n, Geometry: tensor.Of("BF16", []uint64{4096, uint64(c.cols)}, n)}}}
		if got := m.workers(c.workers); got != c.want {
			t.Errorf("%d columns, %d workers: %d, want %d", c.cols, c.workers, got, c.want)
		}
	}
}
