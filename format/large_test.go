package format

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// sparseFile is a file of zeros with something at both ends.
type sparseFile struct {
	head, tail []byte
	size       int64
}

func (f *sparseFile) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, zeroReader(len(b)))
	if at < int64(len(f.head)) {
		copy(b, f.head[at:])
	}
	tailAt := f.size - int64(len(f.tail))
	if from := tailAt - at; from >= 0 && from < int64(len(b)) {
		copy(b[from:], f.tail)
	} else if from < 0 {
		n = copy(b, f.tail[-from:])
		if n < len(b) {
			return n, io.EOF
		}
	}
	return n, nil
}

func zeroReader(n int) []byte { return make([]byte, n) }

// sparse makes a file of n BF16 matrices of the given size whose data is not there, with the hashes of noise.
func sparse(tb testing.TB, n int, tensorBytes uint64) (io.ReaderAt, int64) {
	tb.Helper()
	m := Member{Kind: KindSafetensors, Name: "model-00001-of-00001.safetensors", Header: HeaderSection{RawLen: 64, StoredLen: 64}}
	pos := uint64(HeaderSize + 64)
	random := noise(uint64(n), 24)
	for i := range n {
		binary.LittleEndian.PutUint64(random, xxh3.Hash(random))
		cols := min(4096, tensorBytes/2)
		t := Tensor{
			Name:  fmt.Sprintf("model.layers.%d.mlp.experts.%d.gate_proj.weight", i/128, i%128),
			DType: tensor.BF16, Shape: []uint64{tensorBytes / 2 / cols, cols}, Length: tensorBytes,
			Digest: [16]byte(random[8:]),
		}
		t.Geometry = tensor.Of(t.DType, t.Shape, t.Length)
		for no := range t.Geometry.Segments() {
			_, elems := t.Geometry.SegmentRange(no)
			s := Segment{Code: 2, TableLen: 300, Chunks: t.Geometry.Chunks(no), DataLen: elems * 2 * 2 / 3, MetaHash: xxh3.Hash(random[3:]) + uint64(no)}
			s.Offset = alignUp(pos, Align(t.Length))
			pos = s.End()
			t.Segments = append(t.Segments, s)
		}
		copy(random[8:], random)
		m.Tensors = append(m.Tensors, t)
	}
	header := appendHeader(nil)
	raw := appendDirectory(nil, []Member{m})
	stored, compressed, err := pack(raw)
	if err != nil {
		tb.Fatal(err)
	}
	f := footer{dirOffset: alignUp(pos, ChunkAlign), storedLen: uint64(len(stored)), rawLen: uint64(len(raw)), dirHash: xxh3.Hash(stored), zstd: compressed}
	f.fileLen = f.dirOffset + f.storedLen + FooterSize
	return &sparseFile{header, f.append(stored, header), int64(f.fileLen)}, int64(f.fileLen)
}

var large = []struct {
	name  string
	n     int
	bytes uint64
}{
	{"210 GB in 5000 segments", 834, 250 << 20},
	{"210 GB in 20000 tensors", 20000, 10 << 20},
	{"90000 tiny tensors", 90000, 8},
}

// TestLarge opens directories of large files in little memory.
func TestLarge(t *testing.T) {
	for _, c := range large {
		t.Run(c.name, func(t *testing.T) {
			r, size := sparse(t, c.n, c.bytes)
			var d *Directory
			var err error
			n := allocated(func() { d, err = Open(r, size) })
			if err != nil {
				t.Fatal(err)
			}
			if got := len(d.Members[0].Tensors); got != c.n {
				t.Errorf("%d tensors", got)
			}
			if n > 64<<20 {
				t.Errorf("allocated %d bytes", n)
			}
			checkCovered(t, d)
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, c := range large {
		b.Run(c.name, func(b *testing.B) {
			r, size := sparse(b, c.n, c.bytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(r, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
