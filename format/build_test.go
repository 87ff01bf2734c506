package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// rehash builds a footer for header and directory as they are, so that tests get past the hashes.
func rehash(header, body, stored []byte, rawLen int, compressed bool) []byte {
	f := footer{
		dirOffset: uint64(len(header) + len(body)), storedLen: uint64(len(stored)), rawLen: uint64(rawLen),
		dirHash: xxh3.Hash(stored), zstd: compressed,
	}
	f.fileLen = f.dirOffset + f.storedLen + FooterSize
	b := bytes.Join([][]byte{header, body, stored}, nil)
	return f.append(b, header)
}

// plan is a member to build: what it holds in plain.
type plan struct {
	name     string
	blob     []byte // where header is nil
	header   []byte
	tensors  []planTensor
	trailing []byte
}

type planTensor struct {
	name  string
	dtype tensor.DType
	shape []uint64
	data  []byte
	geom  *tensor.Geometry // nil: the writer's
}

// safetensorsHeader prefixes text with its length, padded to 8.
func safetensorsHeader(text string) []byte {
	for len(text)%8 != 0 {
		text += " "
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
}

// fakeCode stands for a code: every second chunk loses its last 40% and the rest is stored raw, so that lengths are odd
// and both kinds of entry occur. It need not be invertible, for this package knows no code.
func fakeCode(i int, units []byte) (stored []byte, raw bool) {
	if i%2 == 1 {
		return units, true
	}
	return units[:len(units)*3/5], false
}

// build writes the file of the plans.
func build(tb testing.TB, plans []plan) []byte {
	tb.Helper()
	var out bytes.Buffer
	buildTo(tb, &out, plans)
	return out.Bytes()
}

func buildTo(tb testing.TB, out io.Writer, plans []plan) []Member {
	tb.Helper()
	w, err := NewWriter(out)
	if err != nil {
		tb.Fatal(err)
	}
	var members []Member
	for _, p := range plans {
		m := Member{Name: p.name}
		if p.header == nil {
			m.Blob = buildTensor(tb, w, planTensor{dtype: tensor.U8, shape: []uint64{uint64(len(p.blob))}, data: p.blob, geom: ptr(tensor.OfBlob(uint64(len(p.blob))))})
			m.Size = uint64(len(p.blob))
			members = append(members, m)
			continue
		}
		m.Kind = KindSafetensors
		if m.Header, err = w.MemberHeader(p.header); err != nil {
			tb.Fatal(err)
		}
		at := uint64(0)
		m.Tensors = []Tensor{}
		for _, t := range p.tensors {
			b := buildTensor(tb, w, t)
			b.Begin = at
			at += b.Length
			m.Tensors = append(m.Tensors, *b)
		}
		if len(p.trailing) > 0 {
			m.Trailing = buildTensor(tb, w, planTensor{dtype: tensor.U8, shape: []uint64{uint64(len(p.trailing))}, data: p.trailing, geom: ptr(tensor.OfBlob(uint64(len(p.trailing))))})
			m.Trailing.Begin = at
		}
		m.Size = uint64(len(p.header)) + at + uint64(len(p.trailing))
		members = append(members, m)
	}
	if err := w.Finish(members); err != nil {
		tb.Fatal(err)
	}
	return members
}

func ptr[T any](v T) *T { return &v }

func buildTensor(tb testing.TB, w *Writer, p planTensor) *Tensor {
	tb.Helper()
	t := &Tensor{Name: p.name, DType: p.dtype, Shape: p.shape, Length: uint64(len(p.data)), Segments: []Segment{}}
	if t.Geometry = tensor.Of(p.dtype, p.shape, t.Length); p.geom != nil {
		t.Geometry = *p.geom
	}
	g := t.Geometry
	digest := NewDigest()
	for no := range g.Segments() {
		first, elems := g.SegmentRange(no)
		seg := p.data[first*uint64(g.UnitSize) : (first+elems)*uint64(g.UnitSize)]
		var entries []IndexEntry
		var pieces [][]byte
		for i, c := range g.AppendChunks(nil, no) {
			units := c.Gather(make([]byte, c.Elems()*g.UnitSize), seg, g.UnitSize)
			stored, raw := fakeCode(i, units)
			e := IndexEntry{Length: uint32(len(stored)), Raw: raw, Stored: checksum.Sum64(stored), Decoded: checksum.Sum64(units)}
			digest.Add(e.Decoded)
			entries = append(entries, e)
			piece := append([]byte(nil), stored...)
			piece = append(piece, make([]byte, alignUp(uint64(len(piece)), ChunkAlign)-uint64(len(piece)))...)
			if i%3 == 1 { // several chunks in one piece
				pieces[len(pieces)-1] = append(pieces[len(pieces)-1], piece...)
			} else {
				pieces = append(pieces, piece)
			}
		}
		table := []byte(fmt.Sprintf("table %d", no))
		s, err := w.Segment(t.Length, 7, table[:no%3*4], entries, pieces)
		if err != nil {
			tb.Fatal(err)
		}
		t.Segments = append(t.Segments, s)
	}
	t.Digest = digest.Sum(t.Length, g)
	return t
}

// check reads every byte of the file as a careful reader would and returns the first fact that does not hold.
func check(file []byte) error {
	d, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	for g := range d.Gaps() {
		if err := CheckZero(file[g.Offset : g.Offset+g.Length]); err != nil {
			return err
		}
	}
	for i := range d.Members {
		m := &d.Members[i]
		if m.Kind == KindSafetensors {
			if _, err := m.Header.Decode(file[m.Header.Offset : m.Header.Offset+m.Header.StoredLen]); err != nil {
				return err
			}
		}
		for k := range m.Tensors {
			if err := checkTensor(file, &m.Tensors[k]); err != nil {
				return err
			}
		}
		for _, t := range []*Tensor{m.Blob, m.Trailing} {
			if t == nil {
				continue
			}
			if err := checkTensor(file, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTensor(file []byte, t *Tensor) error {
	digest := NewDigest()
	for no := range t.Segments {
		s := &t.Segments[no]
		chunks := t.Geometry.AppendChunks(nil, no)
		index, _, err := s.ParseMeta(nil, file[s.Offset:s.DataOffset()], chunks, t.Geometry.UnitSize)
		if err != nil {
			return err
		}
		data := file[s.DataOffset():s.End()]
		if err := CheckPadding(data, index); err != nil {
			return err
		}
		for i, e := range index {
			b := data[e.Offset : e.Offset+uint64(e.Length)]
			if checksum.Sum64(b) != e.Stored {
				return fmt.Errorf("chunk %d: %w", i, ErrCorrupt)
			}
			if e.Raw && chunks[i].Elems()*t.Geometry.UnitSize != len(b) {
				return fmt.Errorf("raw chunk %d: %w", i, ErrCorrupt)
			}
			digest.Add(e.Decoded)
		}
	}
	if digest.Sum(t.Length, t.Geometry) != t.Digest {
		return fmt.Errorf("digest: %w", ErrCorrupt)
	}
	return nil
}

func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// small is a file of few bytes in which everything occurs: both kinds of member, a compressed header, trailing bytes,
// tensors without bytes, tiles, several segments, unknown types.
func small() []plan {
	tiles := tensor.Geometry{Unit: tensor.BF16, UnitSize: 2, Rows: 3, Cols: 300, TileRows: 2, ChunkElems: 256, SegElems: 600}
	odd := tensor.Geometry{Unit: tensor.U8, UnitSize: 1, Rows: 1, Cols: 101, ChunkElems: 16, SegElems: 64}
	return []plan{
		{name: "config.json", blob: []byte(`{"layers": 3}`)},
		{name: "empty", blob: []byte{}},
		{
			name:   "dir/model.safetensors",
			header: safetensorsHeader(`{"__metadata__":{"k":"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"}}`),
			tensors: []planTensor{
				{name: "none", dtype: tensor.F32, shape: []uint64{0, 4}},
				{name: "scalar", dtype: tensor.F32, shape: []uint64{}, data: noise(1, 4)},
				{name: "", dtype: tensor.I64, shape: []uint64{3}, data: noise(2, 24)},
				{name: "tiles", dtype: tensor.BF16, shape: []uint64{3, 300}, data: noise(3, 1800), geom: &tiles},
				{name: "later", dtype: "Q3_K", shape: []uint64{7}, data: noise(4, 101), geom: &odd},
				{name: "last", dtype: tensor.F4, shape: []uint64{2, 0, 2}},
			},
			trailing: []byte("tail"),
		},
		{name: "bare.safetensors", header: safetensorsHeader(`{}`), tensors: []planTensor{}},
	}
}
