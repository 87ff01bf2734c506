package format

import (
	"iter"
	"strconv"

	"github.com/wcodec/wcodec/tensor"
)

// Directory says what a file holds and where.
type Directory struct {
	Major, Minor uint16
	Optional     uint64 // optional feature bits, known or not
	Members      []Member
	Size         uint64 // of the file
	Offset       uint64 // of the stored directory
	StoredLen    uint64 // of the stored directory
}

// Kind is the kind of a member.
type Kind uint8

// The kinds of members.
const (
	KindBlob        Kind = 0 // any file, as bytes
	KindSafetensors Kind = 1 // a safetensors file, tensor by tensor
)

func (k Kind) String() string {
	switch k {
	case KindBlob:
		return "blob"
	case KindSafetensors:
		return "safetensors"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Member is one file inside a .wcodec file.
type Member struct {
	Kind Kind
	Name string // see ValidName; no two members share one

	Size uint64 // of the original file in bytes

	// Blob is the content of a blob: a tensor of U8 without a name.
	Blob *Tensor

	// The others are parts of a safetensors member. The tensors stand in the order of their data, which they cover from
	// its first byte to its last without overlap; no two share a name. Trailing is what follows the last of them, a
	// tensor of U8 without a name, and nil where nothing does.
	Header   HeaderSection
	Tensors  []Tensor
	Trailing *Tensor
}

// size adds up the parts of the member.
func (m *Member) size() uint64 {
	n := m.Header.RawLen
	if k := len(m.Tensors); k > 0 {
		n += m.Tensors[k-1].Begin + m.Tensors[k-1].Length
	}
	for _, t := range []*Tensor{m.Blob, m.Trailing} {
		if t != nil {
			n += t.Length
		}
	}
	return n
}

// HeaderSection is where the header of a safetensors member is stored: its original bytes, the leading length
// included.
type HeaderSection struct {
	Offset    uint64 // in the file
	StoredLen uint64
	RawLen    uint64
	Hash      uint64 // xxh3-64 of the stored bytes
	Zstd      bool   // stored as one zstd frame
}

// Tensor is the record of one tensor.
type Tensor struct {
	Name     string
	DType    tensor.DType // as the header of the member spells it, known or not
	Shape    []uint64
	Begin    uint64 // first byte in the data of the member, the header not counted
	Length   uint64 // bytes
	Geometry tensor.Geometry
	Segments []Segment
	Digest   [16]byte // see DigestState
}

// Segment says where a segment of a tensor is stored: Chunks entries of the index, the table of the code, zeros up to
// a multiple of 16 bytes, and then the data of its chunks.
type Segment struct {
	Offset   uint64 // of the index in the file
	DataLen  uint64 // bytes of the data
	MetaHash uint64 // xxh3-64 of everything before the data
	TableLen int    // bytes of the table
	Chunks   int
	Code     uint8 // number of the code; not necessarily a known one
}

// MetaLen is the number of bytes before the data: index, table and padding.
func (s *Segment) MetaLen() int {
	return int(alignUp(uint64(s.Chunks)*IndexEntrySize+uint64(s.TableLen), ChunkAlign))
}

// DataOffset is where the data starts in the file.
func (s *Segment) DataOffset() uint64 { return s.Offset + uint64(s.MetaLen()) }

// End is where the segment ends in the file.
func (s *Segment) End() uint64 { return s.DataOffset() + s.DataLen }

// StoredLen is the number of bytes of the segment in the file, the padding before it not counted.
func (s *Segment) StoredLen() uint64 { return s.End() - s.Offset }

// StoredLen is the number of bytes of all segments of the tensor.
func (t *Tensor) StoredLen() uint64 {
	n := uint64(0)
	for i := range t.Segments {
		n += t.Segments[i].StoredLen()
	}
	return n
}

// Range is a run of bytes of a file.
type Range struct{ Offset, Length uint64 }

// Gaps yields the runs of bytes between the sections of the file, in order. All of them must be zero (see CheckZero);
// Open does not read them. With these, every byte of a file is under a check: header, footer and directory are checked
// by Open, member headers by HeaderSection.Decode, index and table by Segment.ParseMeta, chunks by their checksums,
// and what is between the chunks by CheckPadding.
func (d *Directory) Gaps() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		pos := uint64(HeaderSize)
		for s := range d.sections {
			if s.Offset > pos && !yield(Range{pos, s.Offset - pos}) {
				return
			}
			pos = s.Offset + s.Length
		}
		if d.Offset > pos {
			yield(Range{pos, d.Offset - pos})
		}
	}
}

// sections yields member headers and segments in the order of the file.
func (d *Directory) sections(yield func(Range) bool) {
	segments := func(t *Tensor) bool {
		for i := range t.Segments {
			if s := &t.Segments[i]; !yield(Range{s.Offset, s.StoredLen()}) {
				return false
			}
		}
		return true
	}
	for i := range d.Members {
		m := &d.Members[i]
		if m.Kind == KindSafetensors && !yield(Range{m.Header.Offset, m.Header.StoredLen}) {
			return
		}
		for j := range m.Tensors {
			if !segments(&m.Tensors[j]) {
				return
			}
		}
		for _, t := range []*Tensor{m.Blob, m.Trailing} {
			if t != nil && !segments(t) {
				return
			}
		}
	}
}
