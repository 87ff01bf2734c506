package wcodec

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/tensor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a tensor before it is in a file.
type plain struct {
	name  string
	dtype tensor.DType
	shape []uint64
	data  []byte
}

// build makes a safetensors file of the tensors, in order.
func build(t testing.TB, tensors ...plain) []byte {
	t.Helper()
	var list []safetensors.Tensor
	var data []byte
	for _, p := range tensors {
		list = append(list, safetensors.Tensor{Name: p.name, DType: p.dtype, Shape: p.shape,
			Begin: uint64(len(data)), End: uint64(len(data) + len(p.data))})
		data = append(data, p.data...)
	}
	b, err := safetensors.AppendHeader(nil, list, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	return append(b, data...)
}

// normal is n Gaussian values of type d and deviation sigma.
func normal(d tensor.DType, n int, sigma float64, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	var b []byte
	for range n {
		x := float32(r.NormFloat64() * sigma)
		bits := math.Float32bits(x)
		switch d {
		case tensor.BF16:
			b = binary.LittleEndian.AppendUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16))
		case tensor.F32:
			b = binary.LittleEndian.AppendUint32(b, bits)
		case tensor.F64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.NormFloat64()*sigma))
		case tensor.F8E4M3:
			e := int(bits>>23&0xff) - 127 + 7
			if e < 1 || e > 15 {
				e = 0
			}
			b = append(b, byte(bits>>31<<7)|byte(e)<<3|byte(bits>>20&7))
		default:
			b = append(b, byte(int8(max(-127, min(127, math.Round(r.NormFloat64()*30))))))
		}
	}
	return b
}

func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	r.Read(b)
	return b
}

// checkpoint is a file with something of everything, large enough for several chunks and ragged tiles.
func checkpoint(t testing.TB) []byte {
	patterns := make([]byte, 2*65536)
	for i := range 65536 {
		binary.LittleEndian.PutUint16(patterns[2*i:], uint16(i))
	}
	return build(t,
		plain{"model.layers.0.q", tensor.BF16, []uint64{700, 600}, normal(tensor.BF16, 700*600, 0.02, 1)},
		plain{"model.layers.0.k", tensor.F32, []uint64{257, 300}, normal(tensor.F32, 257*300, 0.02, 2)},
		plain{"experts", tensor.BF16, []uint64{4, 100, 333}, normal(tensor.BF16, 4*100*333, 0.05, 3)},
		plain{"patterns", tensor.BF16, []uint64{256, 256}, patterns},
		plain{"scalar", tensor.F32, nil, normal(tensor.F32, 1, 1, 4)},
		plain{"empty", tensor.BF16, []uint64{0, 5}, nil},
		plain{"odd", tensor.U8, []uint64{3}, []byte{1, 2, 3}},
		plain{"misaligned", tensor.BF16, []uint64{33, 1000}, normal(tensor.BF16, 33000, 0.02, 5)},
		plain{"fp8", tensor.F8E4M3, []uint64{512, 512}, normal(tensor.F8E4M3, 512*512, 0.3, 6)},
		plain{"int8", tensor.I8, []uint64{300, 700}, normal(tensor.I8, 300*700, 1, 7)},
		plain{"noise", tensor.BF16, []uint64{512, 512}, noise(512*512*2, 8)},
		plain{"zeros", tensor.BF16, []uint64{1000, 1000}, make([]byte, 2000000)},
		plain{"complex", tensor.C64, []uint64{40, 500}, normal(tensor.F32, 40000, 1, 9)},
		plain{"double", tensor.F64, []uint64{100, 300}, normal(tensor.F64, 30000, 1, 10)},
		plain{"f4", tensor.F4, []uint64{64, 64}, noise(2048, 11)},
		plain{"new type", "Q7_X", []uint64{5, 5, 5}, noise(999, 12)},
		plain{"vector", tensor.BF16, []uint64{100001}, normal(tensor.BF16, 100001, 0.02, 13)},
	)
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// pack compresses one source from a stream.
func pack(t testing.TB, name string, b []byte, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := Compress(t.Context(), &out, []Source{{Name: name, Reader: bytes.NewReader(b), Size: int64(len(b))}}, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(t testing.TB, b []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
