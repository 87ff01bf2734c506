package format

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/wcodec/wcodec/tensor"
)

// The fewest bytes that a record takes, by which counts are checked before anything is allocated for them.
const (
	minMember  = 1 + 1 + 1 + 1 + 1 + 8 + 1 + 1
	minBody    = 1 + 1 + 2 + 1 + 1 + 1 + 16
	minTensor  = 1 + 1 + 1 + minBody
	minSegment = 1 + 1 + 1 + 8
)

// parser reads a raw directory. The first fact that does not hold stays in err, and everything read from then on is
// zero. Names share the memory of s.
type parser struct {
	s     string
	at    int
	pos   uint64 // end of the last section placed in the file
	limit uint64 // end of the sections: the offset of the directory
	what  string // the record being read, for errors
	err   error

	tensors  int // of the whole file so far
	dims     []uint64
	segments []Segment
}

// parseDirectory parses the raw directory s of a file whose directory is stored at offset.
func parseDirectory(s string, offset uint64) ([]Member, error) {
	p := &parser{s: s, pos: HeaderSize, limit: offset, what: "directory"}
	members := make([]Member, p.count("members", minMember, MaxMembers))
	for i := range members {
		p.what = fmt.Sprintf("member %d", i)
		if p.member(&members[i]); p.err != nil {
			return nil, p.err
		}
	}
	p.what = "directory"
	if p.err == nil && p.at != len(p.s) {
		p.failf("%d bytes after the last member", len(p.s)-p.at)
	}
	if name, ok := repeated(len(members), func(i int) string { return members[i].Name }); ok {
		p.failf("two members are called %q", name)
	}
	if alignUp(p.pos, ChunkAlign) != offset {
		p.failf("stored at %d, the sections end at %d", offset, p.pos)
	}
	if p.err != nil {
		return nil, p.err
	}
	return members, nil
}

func (p *parser) member(m *Member) {
	m.Kind, m.Name = Kind(p.u8()), p.string()
	if p.err != nil {
		return
	}
	if !ValidName(m.Name) {
		p.failf("its name %.100q is not a plain relative path", m.Name)
		return
	}
	switch m.Kind {
	case KindBlob:
		m.Blob = p.bytes(p.uvarint())
	case KindSafetensors:
		p.header(&m.Header)
		m.Tensors = make([]Tensor, p.count("tensors", minTensor, MaxTensors-p.tensors))
		p.tensors += len(m.Tensors)
		at := uint64(0)
		for i := range m.Tensors {
			t := &m.Tensors[i]
			t.Begin = at
			if p.tensor(t); p.err != nil {
				p.err = fmt.Errorf("tensor %d %.100q of %w", i, t.Name, p.err)
				return
			}
			at += t.Length // far from overflow: a segment is at most 128 MiB and has a record in the directory
		}
		if n := p.uvarint(); n != 0 {
			m.Trailing = p.bytes(n)
			m.Trailing.Begin = at
		}
		if name, ok := repeated(len(m.Tensors), func(i int) string { return m.Tensors[i].Name }); ok {
			p.failf("two tensors are called %q", name)
		}
	default:
		p.failf("unknown kind %d", m.Kind)
	}
	m.Size = m.size()
}

func (p *parser) header(h *HeaderSection) {
	compressed := p.u8()
	h.Zstd, h.RawLen, h.StoredLen, h.Hash = compressed == 1, p.uvarint(), p.uvarint(), p.u64()
	if p.err != nil {
		return
	}
	if compressed > 1 || h.RawLen < 8 {
		p.failf("header of %d bytes, stored in way %d", h.RawLen, compressed)
		return
	}
	if err := checkStored("header", h.StoredLen, h.RawLen, MaxMemberHeader, h.Zstd); err != nil {
		p.err = fmt.Errorf("%s: %w", p.what, err)
		return
	}
	h.Offset = p.place(ChunkAlign, h.StoredLen)
}

func (p *parser) tensor(t *Tensor) {
	t.Name, t.DType = p.string(), tensor.DType(p.string())
	t.Shape = p.shape(p.count("dimensions", 1, tensor.MaxRank))
	t.Length = p.uvarint()
	if t.DType.Known() && p.err == nil {
		if n, err := tensor.ByteLen(t.DType, t.Shape); err != nil {
			p.failf("%v", err)
		} else if n != t.Length {
			p.failf("%d bytes for %s of shape %v", t.Length, t.DType, t.Shape)
		}
	}
	p.body(t)
}

// bytes reads the body of an anonymous tensor of n bytes.
func (p *parser) bytes(n uint64) *Tensor {
	t := &Tensor{DType: tensor.U8, Shape: p.dim(n), Length: n}
	p.body(t)
	return t
}

// body reads what follows the length of a tensor.
func (p *parser) body(t *Tensor) {
	p.geometry(&t.Geometry, t.Length)
	if p.err != nil {
		return
	}
	g, left := &t.Geometry, t.Geometry.Elems()
	// Not g.Segments, which is an int.
	count := left / g.SegElems
	if left%g.SegElems != 0 {
		count++
	}
	if count > uint64(len(p.s)-p.at)/minSegment {
		p.failf("%d segments in %d bytes of directory", count, len(p.s)-p.at)
		return
	}
	align := Align(t.Length)
	t.Segments = take(&p.segments, int(count))
	for i := range t.Segments {
		if p.segment(&t.Segments[i], g, i, align); p.err != nil {
			return
		}
	}
	copy(t.Digest[:], p.take(len(t.Digest)))
}

func (p *parser) geometry(g *tensor.Geometry, length uint64) {
	size := p.u8()
	unit := p.string()
	g.UnitSize, g.Unit = int(size), tensor.DType(unit)
	tileRows := p.uvarint()
	cols := uint64(0)
	if tileRows != 0 {
		cols = p.uvarint()
	}
	chunk := p.uvarint()
	g.SegElems = p.uvarint()
	if p.err != nil {
		return
	}
	if tileRows > math.MaxUint32 || chunk > math.MaxUint32 {
		p.failf("tiles of %d rows, chunks of %d units", tileRows, chunk)
		return
	}
	g.TileRows, g.ChunkElems = uint32(tileRows), uint32(chunk)
	if unit == "" || size == 0 || size > 8 || g.Unit.Known() && g.Unit.Bits() != 8*int(size) || length%uint64(size) != 0 {
		p.failf("units %q of %d bytes for %d bytes", unit, size, length)
		return
	}
	g.Rows, g.Cols = 1, length/uint64(size)
	if tileRows != 0 {
		if cols == 0 || g.Cols%cols != 0 {
			p.failf("rows of %d units for %d units", cols, g.Cols)
			return
		}
		g.Rows, g.Cols = g.Cols/cols, cols
	}
	if err := g.Validate(); err != nil {
		p.failf("%v", err)
	}
}

func (p *parser) segment(s *Segment, g *tensor.Geometry, no int, align uint64) {
	s.Code = p.u8()
	table := p.uvarint()
	s.DataLen, s.MetaHash = p.uvarint(), p.u64()
	s.Chunks = g.Chunks(no)
	if p.err != nil {
		return
	}
	if s.Chunks > MaxChunks || table > MaxTable {
		p.failf("segment %d of %d chunks with a table of %d bytes", no, s.Chunks, table)
		return
	}
	s.TableLen = int(table)
	_, elems := g.SegmentRange(no)
	if s.DataLen > elems*uint64(g.UnitSize)+uint64(s.Chunks)*(ChunkAlign-1) {
		p.failf("segment %d of %d units of %d bytes is stored in %d bytes", no, elems, g.UnitSize, s.DataLen)
		return
	}
	s.Offset = p.place(align, uint64(s.MetaLen())+s.DataLen)
}

// place puts the next section of length bytes, which is below 2^40, behind the last one and returns its offset.
func (p *parser) place(align, length uint64) uint64 {
	at := alignUp(p.pos, align)
	if p.pos = at + length; p.pos > p.limit {
		p.failf("section of %d bytes at %d runs into the directory at %d", length, at, p.limit)
	}
	return at
}

func (p *parser) failf(f string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %s: %w", p.what, fmt.Sprintf(f, args...), ErrCorrupt)
	}
}

// take returns the next n bytes, or as much as nothing where they are not there.
func (p *parser) take(n int) string {
	if p.err == nil && n > len(p.s)-p.at {
		p.failf("directory ends after %d bytes, inside a record", len(p.s))
	}
	if p.err != nil {
		return ""
	}
	p.at += n
	return p.s[p.at-n : p.at]
}

func (p *parser) u8() uint8 {
	if b := p.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (p *parser) u64() uint64 {
	if b := p.take(8); b != "" {
		return binary.LittleEndian.Uint64([]byte(b))
	}
	return 0
}

// uvarint reads an integer that is encoded in as few bytes as it can be.
func (p *parser) uvarint() uint64 {
	v := uint64(0)
	for shift := uint(0); ; shift += 7 {
		b := p.u8()
		if shift == 63 && b > 1 || b == 0 && shift > 0 {
			p.failf("an integer at byte %d of the directory is not in its shortest form", p.at-1)
		}
		if p.err != nil {
			return 0
		}
		v |= uint64(b&127) << shift
		if b < 128 {
			return v
		}
	}
}

func (p *parser) string() string {
	n := p.uvarint()
	if p.err == nil && n > uint64(len(p.s)-p.at) {
		p.failf("string of %d bytes where %d are left", n, len(p.s)-p.at)
	}
	if p.err != nil {
		return ""
	}
	return p.take(int(n))
}

// count reads a number of records of at least size bytes each.
func (p *parser) count(of string, size, most int) int {
	n := p.uvarint()
	if p.err == nil && (n > uint64(len(p.s)-p.at)/uint64(size) || n > uint64(most)) {
		p.failf("%d %s, with %d bytes of directory left", n, of, len(p.s)-p.at)
	}
	if p.err != nil {
		return 0
	}
	return int(n)
}

func (p *parser) shape(rank int) []uint64 {
	s := take(&p.dims, rank)
	for i := range s {
		s[i] = p.uvarint()
	}
	return s
}

func (p *parser) dim(n uint64) []uint64 {
	s := take(&p.dims, 1)
	s[0] = n
	return s
}

// take cuts n zero elements off a slab that is renewed when it is used up, so that a hundred thousand short slices are
// few allocations. The result is not nil.
func take[T any](slab *[]T, n int) []T {
	const renew = 512
	if n == 0 {
		return []T{}
	}
	if n > len(*slab) {
		if n > renew/2 {
			return make([]T, n)
		}
		*slab = make([]T, renew)
	}
	s := (*slab)[:n:n]
	*slab = (*slab)[n:]
	return s
}

// repeated returns a name that two of n records share.
func repeated(n int, name func(int) string) (string, bool) {
	seen := make(map[string]struct{}, n)
	for i := range n {
		s := name(i)
		if _, ok := seen[s]; ok {
			return s, true
		}
		seen[s] = struct{}{}
	}
	return "", false
}
