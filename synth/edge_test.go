package synth

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
)

// edgeFile makes an edge file and parses it.
func edgeFile(t *testing.T, write func(io.Writer, uint64) error) ([]byte, *safetensors.Header) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, 1); err != nil {
		t.Fatal(err)
	}
	h, err := safetensors.Parse(b.Bytes(), int64(b.Len()))
	if err == nil {
		err = h.CheckSize(int64(b.Len()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), h
}

// TestEdge checks that the edge file has what it promises.
func TestEdge(t *testing.T) {
	b, h := edgeFile(t, Edge)
	byName := make(map[string][]byte)
	ranks, types, misaligned := make(map[int]bool), make(map[tensor.DType]bool), 0
	for i := range h.Tensors {
		x := &h.Tensors[i]
		byName[x.Name] = b[h.DataOffset()+x.Begin : h.DataOffset()+x.End]
		ranks[len(x.Shape)] = true
		types[x.DType] = true
		if size := uint64(x.DType.Bits() / 8); size > 1 && x.Begin%size != 0 {
			misaligned++
		}
	}
	for r := range 9 {
		if !ranks[r] {
			t.Errorf("no tensor of rank %d", r)
		}
	}
	for _, d := range []tensor.DType{
		tensor.BOOL, tensor.F4, tensor.F6E2M3, tensor.F6E3M2, tensor.U8, tensor.I8, tensor.F8E5M2, tensor.F8E4M3,
		tensor.F8E8M0, tensor.F8E4M3FNUZ, tensor.I16, tensor.U16, tensor.F16, tensor.BF16, tensor.I32, tensor.U32,
		tensor.F32, tensor.C64, tensor.I64, tensor.U64, tensor.F64, "F2_FROM_THE_FUTURE",
	} {
		if !types[d] {
			t.Errorf("no tensor of type %s", d)
		}
	}
	if misaligned < 30 {
		t.Errorf("%d tensors are misaligned, want 30 at least", misaligned)
	}
	for _, name := range []string{"patterns.bf16", "patterns.f16"} {
		seen := make(map[uint16]bool)
		for p := byName[name]; len(p) > 0; p = p[2:] {
			seen[binary.LittleEndian.Uint16(p)] = true
		}
		if len(seen) != 65536 {
			t.Errorf("%s has %d patterns of 65,536", name, len(seen))
		}
	}
	for p := byName["nan.bf16"]; len(p) > 0; p = p[2:] {
		if v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(p)) << 16); v == v {
			t.Fatalf("nan.bf16 holds %v", v)
		}
	}
	payloads := make(map[uint32]bool)
	for p := byName["nan.f32"]; len(p) > 0; p = p[4:] {
		v := binary.LittleEndian.Uint32(p)
		if f := math.Float32frombits(v); f == f {
			t.Fatalf("nan.f32 holds %v", f)
		}
		payloads[v] = true
	}
	if len(payloads) < 3000 {
		t.Errorf("nan.f32 has %d payloads", len(payloads))
	}
	for p := byName["nan.f64"]; len(p) > 0; p = p[8:] {
		if f := math.Float64frombits(binary.LittleEndian.Uint64(p)); f == f {
			t.Fatalf("nan.f64 holds %v", f)
		}
	}
	for name, want := range map[string]byte{"zero.bf16": 0, "zero.f32": 0, "constant.u8": 0xA5} {
		if p := byName[name]; len(p) == 0 || bytes.Count(p, []byte{want}) != len(p) {
			t.Errorf("%s is not %#x all over", name, want)
		}
	}
	ones := bytes.Count(byName["odd.bool"], []byte{1})
	if zeros := bytes.Count(byName["odd.bool"], []byte{0}); ones+zeros != 10001 || ones < 4500 || zeros < 4500 {
		t.Errorf("odd.bool has %d ones and %d zeros", ones, zeros)
	}
	inf := 0
	for p := byName["huge.f32"]; len(p) > 0; p = p[4:] {
		if f := math.Float32frombits(binary.LittleEndian.Uint32(p)); math.IsInf(float64(f), 0) {
			inf++
		}
	}
	if inf != 0 {
		t.Errorf("huge.f32 has %d infinities", inf)
	}
}

// TestTiny checks the file of tiny tensors.
func TestTiny(t *testing.T) {
	b, h := edgeFile(t, Tiny)
	if len(h.Tensors) != 90000 || len(b) > 20<<20 {
		t.Errorf("%d tensors in %d bytes", len(h.Tensors), len(b))
	}
	for i := range h.Tensors {
		if n := h.Tensors[i].Size(); n > 320 {
			t.Fatalf("tensor %s has %d bytes", h.Tensors[i].Name, n)
		}
	}
}

// TestEdgeWritten checks that Edge streams what Write writes.
func TestEdgeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := Write(context.Background(), dir, Options{Model: "edge", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := edgeFile(t, Edge); !bytes.Equal(got, want) {
		t.Error("the streamed edge file differs from the written one")
	}
}

// full is a writer whose medium is full after some bytes.
type full struct{ left int }

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestEdgeFull(t *testing.T) {
	for _, n := range []int{0, 100000} {
		if err := Edge(&full{n}, 1); !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v, want errFull", n, err)
		}
	}
}
