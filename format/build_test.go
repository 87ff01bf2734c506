package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// assemble makes a file of a body, which starts with a header, and a raw directory, with hashes that match.
func assemble(body []byte, directory []byte) []byte {
	f := footer{dirOffset: uint64(len(body)), storedLen: uint64(len(directory)), rawLen: uint64(len(directory)), dirHash: xxh3.Hash(directory)}
	f.fileLen = f.dirOffset + f.storedLen + FooterSize
	b := append(append([]byte(nil), body...), directory...)
	return f.append(b, body[:HeaderSize])
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

// safetensorsHeader is a header for the tensors, with some metadata in front.
func safetensorsHeader(tensors []planTensor) []byte {
	text := `{"__metadata__":{"format":"pt"}`
	at := 0
	for _, t := range tensors {
		shape, err := json.Marshal(t.shape)
		if err != nil {
			panic(err)
		}
		text += fmt.Sprintf(`,%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, t.name, t.dtype, shape, at, at+len(t.data))
		at += len(t.data)
	}
	text += "}"
	text += strings.Repeat(" ", -len(text)&7)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
}

// code is what a builder codes with. A fake one need not be invertible, for this package knows no code.
type code struct {
	id    uint8
	chunk func(i int, units []byte) (stored []byte, raw bool)
	table func(segment int) []byte
}

var (
	// rawCode is the code 0 of the format.
	rawCode = code{
		chunk: func(_ int, units []byte) ([]byte, bool) { return units, true },
		table: func(int) []byte { return nil },
	}
	// fakeCode stores every second chunk raw and drops a part of the others, so that lengths are odd, sometimes 0, and
	// both kinds of entry occur.
	fakeCode = code{
		id: 7,
		chunk: func(i int, units []byte) ([]byte, bool) {
			if i%2 == 1 {
				return units, true
			}
			return units[:len(units)*(i%5)/5], false
		},
		table: func(no int) []byte { return []byte(fmt.Sprintf("table %d", no))[:no%3*4] },
	}
)

// build writes the file of the plans.
func build(tb fataler, plans []plan, c code) ([]byte, []Member) {
	tb.Helper()
	var out bytes.Buffer
	members := buildTo(tb, &out, plans, c)
	return out.Bytes(), members
}

// fataler is what testing.TB and rapid.T have in common here.
type fataler interface {
	Helper()
	Fatal(...any)
}

func buildTo(tb fataler, out io.Writer, plans []plan, c code) []Member {
	tb.Helper()
	w, err := NewWriter(out)
	if err != nil {
		tb.Fatal(err)
	}
	var members []Member
	for _, p := range plans {
		m := Member{Name: p.name}
		if p.header == nil {
			m.Blob = buildTensor(tb, w, c, planTensor{dtype: tensor.U8, shape: []uint64{uint64(len(p.blob))}, data: p.blob, geom: ptr(tensor.OfBlob(uint64(len(p.blob))))})
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
			b := buildTensor(tb, w, c, t)
			b.Begin = at
			at += b.Length
			m.Tensors = append(m.Tensors, *b)
		}
		if len(p.trailing) > 0 {
			m.Trailing = buildTensor(tb, w, c, planTensor{dtype: tensor.U8, shape: []uint64{uint64(len(p.trailing))}, data: p.trailing, geom: ptr(tensor.OfBlob(uint64(len(p.trailing))))})
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

func buildTensor(tb fataler, w *Writer, cd code, p planTensor) *Tensor {
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
			stored, raw := cd.chunk(i, units)
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
		s, err := w.Segment(t.Length, cd.id, cd.table(no), entries, pieces)
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
	tensors := []planTensor{
		{name: "none", dtype: tensor.F32, shape: []uint64{0, 4}},
		{name: "scalar", dtype: tensor.F32, shape: []uint64{}, data: noise(1, 4)},
		{name: "", dtype: tensor.I64, shape: []uint64{3}, data: noise(2, 24)},
		{name: "tiles", dtype: tensor.BF16, shape: []uint64{3, 300}, data: noise(3, 1800), geom: &tiles},
		{name: "later", dtype: "Q3_K", shape: []uint64{7}, data: noise(4, 101), geom: &odd},
		{name: "last", dtype: tensor.F4, shape: []uint64{2, 0, 2}},
	}
	return []plan{
		{name: "config.json", blob: []byte(`{"layers": 3}`)},
		{name: "empty", blob: []byte{}},
		{name: "dir/model.safetensors", header: safetensorsHeader(tensors), tensors: tensors, trailing: []byte("tail")},
		{name: "bare.safetensors", header: safetensorsHeader(nil), tensors: []planTensor{}},
	}
}
