package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// FuzzOpen opens arbitrary files. With an odd first byte, which is not part of the file, the hashes of header, directory
// and footer and the magics are first made right, so that what lies behind them is reached; with bit 1 set the rest of
// the input is a raw directory alone, of a file with a body of zeros that is as long as that directory would have it.
func FuzzOpen(f *testing.F) {
	for _, c := range []code{fakeCode, rawCode} {
		file, members := build(f, small(), c)
		f.Add(append([]byte{0}, file...))
		f.Add(append([]byte{1}, file...))
		for i := range members {
			f.Add(append([]byte{2}, appendDirectory(nil, members[i:i+1])...))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		file := bytes.Clone(in[1:])
		switch {
		case in[0]&2 != 0:
			file = wrap(file)
		case in[0]&1 != 0 && len(file) >= HeaderSize+FooterSize:
			repair(file)
		}
		d, err := open(file)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrNotWcodec) {
				t.Fatal(err)
			}
			return
		}
		exercise(t, file, d)
	})
}

// wrap makes a file of zeros for a raw directory.
func wrap(raw []byte) []byte {
	p := &parser{s: string(raw), pos: HeaderSize, limit: 1 << 20}
	for range p.count("members", minMember, MaxMembers) {
		p.member(new(Member))
	}
	body := appendHeader(nil)
	body = append(body, make([]byte, alignUp(min(p.pos, p.limit), ChunkAlign)-HeaderSize)...)
	return assemble(body, raw)
}

// repair makes the magics and hashes of file right, as far as its fields allow, in place.
func repair(file []byte) {
	copy(file, magic)
	binary.LittleEndian.PutUint64(file[56:], xxh3.Hash(file[:56]))
	b := file[len(file)-FooterSize:]
	binary.LittleEndian.PutUint64(b[32:], uint64(len(file)))
	end := uint64(len(file) - FooterSize)
	if at := binary.LittleEndian.Uint64(b); at < end {
		binary.LittleEndian.PutUint64(b[8:], end-at)
		binary.LittleEndian.PutUint64(b[24:], xxh3.Hash(file[at:end]))
	}
	binary.LittleEndian.PutUint64(b[48:], footerHash(file, b[:48]))
	copy(b[56:], endMagic)
}

// exercise checks what Open promises of a directory, and reads everything that it points to.
func exercise(t *testing.T, file []byte, d *Directory) {
	checkCovered(t, d)
	raw := appendDirectory(nil, d.Members)
	again, err := parseDirectory(string(raw), d.Offset)
	if err != nil || !bytes.Equal(appendDirectory(nil, again), raw) {
		t.Fatalf("directory does not survive: %v", err)
	}
	// A file whose directory is stored as it is has exactly the canonical bytes.
	if d.StoredLen == uint64(len(raw)) && !bytes.Equal(raw, file[d.Offset:d.Offset+d.StoredLen]) {
		t.Fatal("directory is not canonical")
	}
	for i := range d.Members {
		m := &d.Members[i]
		if m.Kind == KindSafetensors {
			h := m.Header
			if b, err := h.Decode(section(file, h)); err == nil && uint64(len(b)) != h.RawLen {
				t.Fatalf("header of %d bytes", len(b))
			}
		}
		for k := range m.Tensors {
			exerciseTensor(t, file, &m.Tensors[k])
		}
		for _, x := range []*Tensor{m.Blob, m.Trailing} {
			if x != nil {
				exerciseTensor(t, file, x)
			}
		}
	}
}

func exerciseTensor(t *testing.T, file []byte, x *Tensor) {
	plain := uint64(0)
	for no := range x.Segments {
		s := x.Segments[no]
		if s.Chunks*IndexEntrySize > len(file) {
			t.Fatalf("%d chunks in a file of %d bytes", s.Chunks, len(file))
		}
		chunks := x.Geometry.AppendChunks(nil, no)
		for _, c := range chunks {
			plain += uint64(c.Elems() * x.Geometry.UnitSize)
		}
		meta := file[s.Offset:s.DataOffset()]
		s.MetaHash = xxh3.Hash(meta)
		exerciseMeta(t, &s, meta, chunks, x.Geometry.UnitSize, file[s.DataOffset():s.End()])
	}
	if plain != x.Length {
		t.Fatalf("chunks of %d bytes for a tensor of %d", plain, x.Length)
	}
}

// exerciseMeta checks what ParseMeta promises of an index.
func exerciseMeta(t *testing.T, s *Segment, meta []byte, chunks []tensor.Chunk, unitSize int, data []byte) {
	index, table, err := s.ParseMeta(nil, meta, chunks, unitSize)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		return
	}
	var again []byte
	at := uint64(0)
	for i := range index {
		again = appendEntry(again, &index[i])
		if e := &index[i]; e.Offset != alignUp(at, ChunkAlign) || e.Offset+uint64(e.Length) > s.DataLen {
			t.Fatalf("chunk %d at %d, the one before ends at %d", i, e.Offset, at)
		}
		at = index[i].Offset + uint64(index[i].Length)
	}
	again = append(again, table...)
	if again = append(again, make([]byte, s.MetaLen()-len(again))...); !bytes.Equal(again, meta) {
		t.Fatal("metadata is not canonical")
	}
	if err := CheckPadding(data, index); err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

// FuzzParseMeta parses arbitrary metadata, with the right hash, of a segment of cols units of 2 bytes.
func FuzzParseMeta(f *testing.F) {
	index := []IndexEntry{{Length: 20}, {Offset: 32, Length: 32, Raw: true}, {Offset: 64, Length: 3}}
	var meta []byte
	for i := range index {
		meta = appendEntry(meta, &index[i])
	}
	f.Add(meta, uint16(40), uint16(0), uint16(67))
	f.Add(append(meta, "table"...), uint16(40), uint16(5), uint16(67))
	f.Fuzz(func(t *testing.T, meta []byte, cols, table, data uint16) {
		g := tensor.Geometry{Unit: tensor.U16, UnitSize: 2, Rows: 1, Cols: uint64(cols) + 1, ChunkElems: 16, SegElems: 1 << 20}
		s := Segment{DataLen: uint64(data), TableLen: int(table), Chunks: g.Chunks(0)}
		if n := s.MetaLen() - len(meta); n > 0 {
			meta = append(bytes.Clone(meta), make([]byte, n)...)
		}
		meta = meta[:s.MetaLen()]
		s.MetaHash = xxh3.Hash(meta)
		exerciseMeta(t, &s, meta, g.AppendChunks(nil, 0), 2, make([]byte, data))
	})
}
