package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// wantError checks that err is the sentinel and states the fact.
func wantError(t *testing.T, err, sentinel error, fact string) {
	t.Helper()
	if !errors.Is(err, sentinel) || !strings.Contains(err.Error(), fact) {
		t.Errorf("%v, want %v with %q", err, sentinel, fact)
	}
}

// headerWith returns the header with bytes changed and its hash made right.
func headerWith(change func(b []byte)) []byte {
	b := appendHeader(nil)
	change(b)
	binary.LittleEndian.PutUint64(b[56:], xxh3.Hash(b[:56]))
	return b
}

func TestHostileHeader(t *testing.T) {
	file, members := build(t, small(), fakeCode)
	directory := appendDirectory(nil, members)
	body := file[HeaderSize:alignUp(uint64(len(file)-FooterSize-storedLen(t, file)), ChunkAlign)]
	with := func(change func(b []byte)) []byte {
		return assemble(append(headerWith(change), body...), directory)
	}
	cases := []struct {
		name     string
		file     []byte
		sentinel error
		fact     string
	}{
		{"empty", nil, ErrNotWcodec, "0 bytes"},
		{"short", []byte("PK\x03\x04"), ErrNotWcodec, "4 bytes"},
		{"magic alone", []byte(magic), ErrCorrupt, "truncated"},
		{"half of the magic", []byte(magic[:4]), ErrCorrupt, "truncated"},
		{"header alone", appendHeader(nil), ErrCorrupt, "truncated"},
		{"other file", bytes.Repeat([]byte("safetens"), 40), ErrNotWcodec, "begins with"},
		{"CR LF to LF", bytes.Replace(file, []byte("\r\n"), []byte("\n"), 1), ErrCorrupt, "opening magic"},
		{"LF to CR LF", bytes.Replace(file, []byte("\x1a"), []byte("\r\n"), 1), ErrCorrupt, "opening magic"},
		{"seven bits", with(func(b []byte) { b[0] &= 127 }), ErrCorrupt, "opening magic"},
		{"hash", func() []byte { b := bytes.Clone(file); b[40] = 1; return b }(), ErrCorrupt, "header does not match its hash"},
		{"major version", with(func(b []byte) { b[8] = 3 }), ErrUnsupported, "version 3.1, this program reads 0.1"},
		{"minor version", with(func(b []byte) { b[10] = 2 }), ErrUnsupported, "version 0.2, this program reads 0.1"},
		{"required feature", with(func(b []byte) { b[23] = 0x80 }), ErrUnsupported, "0x8000000000000000"},
		{"reserved at 12", with(func(b []byte) { b[15] = 1 }), ErrCorrupt, "reserved"},
		{"reserved at 32", with(func(b []byte) { b[55] = 1 }), ErrCorrupt, "reserved"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(c.file)
			wantError(t, err, c.sentinel, c.fact)
		})
	}
	d, err := open(with(func(b []byte) { b[31] = 0x40 }))
	if err != nil || d.Optional != 1<<62 {
		t.Errorf("unknown optional feature: %v", err)
	}
}

func storedLen(t *testing.T, file []byte) int {
	d, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	return int(d.StoredLen)
}

func TestHostileFooter(t *testing.T) {
	file, _ := build(t, small(), fakeCode)
	d, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	header := file[:HeaderSize]
	good, err := parseFooter(file[len(file)-FooterSize:], header, d.Size)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := build(t, small()[:1], fakeCode)
	cases := []struct {
		name string
		edit func(f *footer)
		fact string
	}{
		{"file length", func(f *footer) { f.fileLen++ }, "bytes of file"},
		{"directory in the header", func(f *footer) { f.dirOffset = 32; f.storedLen = d.Size - 64 - 32 }, "does not end"},
		{"directory behind the file", func(f *footer) { f.dirOffset = math.MaxUint64 &^ 15 }, "does not end"},
		{"directory wraps", func(f *footer) { f.storedLen = math.MaxUint64 }, "does not end"},
		{"directory shorter", func(f *footer) { f.storedLen-- }, "does not end"},
		{"directory not aligned", func(f *footer) { f.dirOffset++; f.storedLen-- }, "does not end"},
		{"directory earlier", func(f *footer) { f.dirOffset -= 16; f.storedLen += 16 }, "does not match its hash"},
		{"directory over the cap", func(f *footer) { f.rawLen = MaxDirectory + 1 }, "the limit is"},
		{"directory expands", func(f *footer) { f.rawLen = 64*f.storedLen + 64<<10 + 1 }, "in a frame of"},
		{"directory shrinks", func(f *footer) { f.rawLen = f.storedLen }, "in a frame of"},
		{"directory not compressed", func(f *footer) { f.zstd = false }, "declares"},
		{"raw length", func(f *footer) { f.rawLen++ }, "frame that declares"},
		{"hash", func(f *footer) { f.dirHash++ }, "directory does not match its hash"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.edit(&f)
			_, err := open(f.append(bytes.Clone(file[:len(file)-FooterSize]), header))
			wantError(t, err, ErrCorrupt, c.fact)
		})
	}
	splice := func(name string, b []byte, fact string) {
		t.Run(name, func(t *testing.T) {
			_, err := open(b)
			wantError(t, err, ErrCorrupt, fact)
		})
	}
	splice("of another file", append(bytes.Clone(file[:len(file)-FooterSize]), other[len(other)-FooterSize:]...), "bytes of file")
	splice("of another header", good.append(bytes.Clone(file[:len(file)-FooterSize]), other[1:1+HeaderSize]), "footer does not match its hash")
	splice("trailing byte", append(bytes.Clone(file), 0), "closing magic")
	splice("trailing file", append(bytes.Clone(file), file...), "bytes of file")
	flags := bytes.Clone(file)
	at := len(file) - FooterSize
	flags[at+40] = 2
	binary.LittleEndian.PutUint64(flags[at+48:], footerHash(header, flags[at:at+48]))
	splice("flags", flags, "unknown flags")
	// The directory of another file, whose sections end elsewhere.
	od, err := open(other)
	if err != nil {
		t.Fatal(err)
	}
	splice("directory of another file", assemble(file[:d.Offset], appendDirectory(nil, od.Members)), "the sections end at")
	splice("gap before the directory", assemble(append(bytes.Clone(file[:d.Offset]), make([]byte, 16)...), appendDirectory(nil, d.Members)), "the sections end at")
	splice("overlap with the directory", assemble(file[:d.Offset-16], appendDirectory(nil, d.Members)), "runs into the directory")
}

func TestHostileDirectory(t *testing.T) {
	u := binary.AppendUvarint
	body := append(appendHeader(nil), make([]byte, 4096)...)
	seg := Segment{DataLen: 16, Chunks: 1}
	g := tensor.Of(tensor.BF16, []uint64{8}, 16)
	one := func(edit func(m *Member, t *Tensor)) []byte {
		m := Member{
			Kind: KindSafetensors, Name: "m", Header: HeaderSection{RawLen: 10, StoredLen: 10},
			Tensors: []Tensor{{Name: "t", DType: tensor.BF16, Shape: []uint64{8}, Length: 16, Geometry: g, Segments: []Segment{seg}}},
		}
		edit(&m, &m.Tensors[0])
		return appendDirectory(nil, []Member{m})
	}
	blob := func(name string) []byte {
		m := appendDirectory(nil, []Member{{Name: name, Blob: &Tensor{Geometry: tensor.OfBlob(0)}}})
		return m[1:]
	}
	good := one(func(*Member, *Tensor) {})
	long := func(b []byte, at int) []byte { // the one-byte integer at 'at' in two bytes
		return append(append(bytes.Clone(b[:at]), b[at]|128, 0), b[at+1:]...)
	}
	cases := []struct {
		name string
		raw  []byte
		fact string
	}{
		{"nothing", nil, "ends after 0 bytes"},
		{"bytes behind", append(u(nil, 0), 0), "1 bytes after the last member"},
		{"long integer", append([]byte{0x80}, 0), "shortest form"},
		{"long integer inside", long(good, 2), "shortest form"},
		{"integer beyond 64 bits", append(bytes.Repeat([]byte{0xff}, 9), 2), "shortest form"},
		{"integer without end", bytes.Repeat([]byte{0xff}, 9), "inside a record"},
		{"members", u(nil, 1<<40), "1099511627776 members"},
		{"members over the cap", append(u(nil, MaxMembers+1), make([]byte, 20*MaxMembers)...), "members"},
		{"kind", append([]byte{1, 2, 1, 'm'}, make([]byte, 20)...), "unknown kind 2"},
		{"string", append([]byte{1, 0}, append(u(nil, 1<<60), make([]byte, 20)...)...), "string of 1152921504606846976 bytes"},
		{"same member twice", append(append([]byte{2}, blob("m")...), blob("m")...), "two members are called"},
		{"name ..", append([]byte{1}, blob("../m")...), "relative path"},
		{"name absolute", append([]byte{1}, blob("/m")...), "relative path"},
		{"name empty", append([]byte{1}, blob("")...), "relative path"},
		{"name .", append([]byte{1}, blob(".")...), "relative path"},
		{"name with backslash", append([]byte{1}, blob(`a\..\b`)...), "relative path"},
		{"name with control", append([]byte{1}, blob("a\x1b[2Jb")...), "relative path"},
		{"name not UTF-8", append([]byte{1}, blob("a\xff")...), "relative path"},
		{"header too short", one(func(m *Member, _ *Tensor) { m.Header.RawLen, m.Header.StoredLen = 7, 7 }), "header of 7 bytes"},
		{"header over the cap", one(func(m *Member, _ *Tensor) { m.Header = HeaderSection{RawLen: 1 << 40, StoredLen: 1 << 40} }), "limit"},
		{"header expands", one(func(m *Member, _ *Tensor) { m.Header = HeaderSection{RawLen: 1 << 20, StoredLen: 20, Zstd: true} }), "in a frame"},
		{"header lengths differ", one(func(m *Member, _ *Tensor) { m.Header.RawLen = 11 }), "stores 10"},
		{"same tensor twice", one(func(m *Member, t *Tensor) { m.Tensors = append(m.Tensors, *t) }), "two tensors"},
		{"dtype and length", one(func(_ *Member, t *Tensor) { t.DType = tensor.F32 }), "16 bytes for F32"},
		{"shape overflows", one(func(_ *Member, t *Tensor) { t.Shape = []uint64{2, 1 << 63} }), "overflows"},
		{"shape overflows twice", one(func(_ *Member, t *Tensor) { t.Shape = []uint64{2, math.MaxUint64 - 1} }), "overflows"},
		{"bits", one(func(_ *Member, t *Tensor) { t.DType, t.Shape = tensor.F4, []uint64{1, 3} }), "whole number"},
		{"rank", one(func(_ *Member, t *Tensor) { t.DType, t.Shape = "?", make([]uint64, 65) }), "65 dimensions"},
		{"unit and size", one(func(_ *Member, t *Tensor) { t.Geometry.UnitSize = 4 }), `units "BF16" of 4 bytes`},
		{"unit of bits", one(func(_ *Member, t *Tensor) { t.Geometry.Unit = tensor.F4 }), `units "F4"`},
		{"unit empty", one(func(_ *Member, t *Tensor) { t.Geometry.Unit = "" }), `units ""`},
		{"unit size 0", one(func(_ *Member, t *Tensor) { t.Geometry.Unit, t.Geometry.UnitSize = "?", 0 }), "of 0 bytes"},
		{"unit size 3", one(func(_ *Member, t *Tensor) {
			t.Geometry.Unit, t.Geometry.UnitSize, t.DType, t.Length = "?", 3, "?", 18
		}), "unit size"},
		{"units not whole", one(func(_ *Member, t *Tensor) { t.DType, t.Length = "?", 17 }), "for 17 bytes"},
		{"chunk of 0", one(func(_ *Member, t *Tensor) { t.Geometry.ChunkElems = 0 }), "chunk size"},
		{"chunk too large", one(func(_ *Member, t *Tensor) { t.Geometry.ChunkElems = math.MaxUint32 }), "chunk size"},
		{"segment of 0", one(func(_ *Member, t *Tensor) { t.Geometry.SegElems = 0 }), "segment size"},
		{"segment too large", one(func(_ *Member, t *Tensor) { t.Geometry.SegElems = 1 << 63 }), "segment size"},
		{"rows of 0", one(func(_ *Member, t *Tensor) { t.Geometry.TileRows, t.Geometry.Cols = 1, 0 }), "rows of 0"},
		{"rows not whole", one(func(_ *Member, t *Tensor) { t.Geometry.TileRows, t.Geometry.Cols = 1, 3 }), "rows of 3"},
		{"segments", one(func(_ *Member, t *Tensor) {
			t.DType, t.Length, t.Geometry.Unit, t.Geometry.UnitSize = "?", 1<<62, "?", 1
			t.Geometry.ChunkElems, t.Geometry.SegElems = 1, 1
		}), "4611686018427387904 segments"},
		{"chunks", one(func(_ *Member, t *Tensor) {
			t.DType, t.Length, t.Geometry.Unit, t.Geometry.UnitSize = "?", 1<<20, "?", 1
			t.Geometry.ChunkElems, t.Geometry.SegElems = 1, 1<<20
		}), "1048576 chunks"},
		{"table", one(func(_ *Member, t *Tensor) { t.Segments[0].TableLen = MaxTable + 1 }), "table of 1048577"},
		{"data longer than units", one(func(_ *Member, t *Tensor) { t.Segments[0].DataLen = 32 }), "is stored in 32 bytes"},
		{"data wraps", one(func(_ *Member, t *Tensor) { t.Segments[0].DataLen = math.MaxUint64 }), "is stored in"},
		{"data in the directory", one(func(_ *Member, t *Tensor) {
			t.DType, t.Shape, t.Length, t.Geometry = "?", []uint64{1}, 9000, tensor.OfBlob(9000)
			t.Segments[0].DataLen = 9000
		}), "runs into the directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := assemble(body, c.raw)
			var err error
			n := allocated(func() { _, err = open(file) })
			wantError(t, err, ErrCorrupt, c.fact)
			if most := uint64(1<<20 + 16*len(file)); n > most {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
	for n := range good {
		if _, err := parseDirectory(string(good[:n]), 4096); !errors.Is(err, ErrCorrupt) {
			t.Errorf("directory cut at %d: %v", n, err)
		}
	}
}

// allocated is the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestFrames opens directories in frames that are not what they declare.
func TestFrames(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	zeros := enc.EncodeAll(make([]byte, 1<<20), nil)
	body := appendHeader(nil)
	for _, c := range []struct {
		name   string
		stored []byte
		rawLen uint64
		fact   string
	}{
		{"expands", zeros, 1 << 20, "in a frame of"},
		{"larger than declared", append(bytes.Clone(zeros), make([]byte, 40)...), 1000, "frame that declares 1000 bytes"},
		{"frames behind", append(bytes.Clone(enc.EncodeAll(make([]byte, 300), nil)), zeros...), 300, "has 1048876"},
		{"garbage", bytes.Repeat([]byte("garbage"), 9), 1000, "frame that declares 1000 bytes"},
		{"garbage behind", append(enc.EncodeAll(make([]byte, 300), nil), "garbage"...), 300, "directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := footer{dirOffset: 64, storedLen: uint64(len(c.stored)), rawLen: c.rawLen, dirHash: xxh3.Hash(c.stored), zstd: true}
			f.fileLen = 128 + f.storedLen
			file := f.append(append(bytes.Clone(body), c.stored...), body)
			_, err := open(file)
			wantError(t, err, ErrCorrupt, c.fact)
		})
	}
}

func TestHostileMeta(t *testing.T) {
	g := tensor.Geometry{Unit: tensor.U16, UnitSize: 2, Rows: 1, Cols: 70, ChunkElems: 16, SegElems: 80}
	chunks := g.AppendChunks(nil, 0) // of 32, 32, 32, 32, 12 bytes
	index := []IndexEntry{{Offset: 0, Length: 17}, {Offset: 32, Length: 32}, {Offset: 64, Length: 0}, {Offset: 64, Length: 1}, {Offset: 80, Length: 12, Raw: true}}
	table := []byte("abc")
	type state struct {
		s     Segment
		index []IndexEntry
		flags uint32
		pad   byte
	}
	cases := []struct {
		name string
		edit func(s *state)
		fact string
	}{
		{"", func(*state) {}, ""},
		{"overlap", func(s *state) { s.index[1].Offset = 16 }, "chunk 1 is at 16 of the data, not at 32"},
		{"gap", func(s *state) { s.index[1].Offset = 48 }, "chunk 1 is at 48"},
		{"decrease", func(s *state) { s.index[3].Offset = 0 }, "chunk 3 is at 0"},
		{"first not at 0", func(s *state) { s.index[0].Offset = 16 }, "chunk 0 is at 16"},
		{"far", func(s *state) { s.index[4].Offset = 16 * math.MaxUint32 }, "chunk 4 is at 68719476720"},
		{"longer than its units", func(s *state) { s.index[1].Length = 33 }, "33 bytes stored for 32"},
		{"longest", func(s *state) { s.index[1].Length = lengthMask }, "16777215 bytes stored for 32"},
		{"raw but shorter", func(s *state) { s.index[0].Raw = true }, "17 bytes stored raw for 32"},
		{"raw checksums", func(s *state) { s.index[4].Stored = 1 }, "checksums of raw bytes differ"},
		{"flags", func(s *state) { s.flags = 1 << 24 }, "unknown flags"},
		{"data longer", func(s *state) { s.s.DataLen++ }, "chunks end at 92 of 93"},
		{"data shorter", func(s *state) { s.s.DataLen-- }, "chunks end at 92 of 91"},
		{"padding", func(s *state) { s.pad = 1 }, "padding of the table"},
		{"hash", func(s *state) { s.s.MetaHash = 1 }, "hash"},
		{"chunks", func(s *state) { s.s.Chunks++ }, "5 chunks"},
		{"table", func(s *state) { s.s.TableLen += 16 }, "metadata"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := state{s: Segment{DataLen: 92, TableLen: len(table), Chunks: len(chunks)}, index: append([]IndexEntry(nil), index...)}
			c.edit(&s)
			var meta []byte
			for i := range s.index {
				meta = appendEntry(meta, &s.index[i])
			}
			meta[4+3] |= byte(s.flags >> 24)
			meta = append(meta, table...)
			meta = append(meta, make([]byte, 16-len(meta)%16)...)
			meta[len(meta)-1] = s.pad
			if s.s.MetaHash == 0 {
				s.s.MetaHash = xxh3.Hash(meta)
			}
			got, gotTable, err := s.s.ParseMeta(nil, meta, chunks, g.UnitSize)
			if c.fact != "" {
				wantError(t, err, ErrCorrupt, c.fact)
			} else if err != nil || len(got) != len(index) || got[4] != index[4] || string(gotTable) != "abc" {
				t.Errorf("%v, %+v %q", err, got, gotTable)
			}
		})
	}
}

func TestPadding(t *testing.T) {
	index := []IndexEntry{{Offset: 32, Length: 17}, {Offset: 64, Length: 16}, {Offset: 80, Length: 3}}
	data := make([]byte, 64)
	for i := range data {
		inside := i < 17 || i >= 32 && i < 51
		data[i] = 1
		if err := CheckPadding(data, index); (err == nil) != inside {
			t.Errorf("byte %d: %v", i, err)
		}
		data[i] = 0
	}
	wantError(t, CheckPadding(data[:48], index), ErrCorrupt, "does not fit")
	if err := CheckPadding(nil, nil); err != nil {
		t.Error(err)
	}
}

func TestHostileMemberHeader(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 9), append([]byte{3}, make([]byte, 9)...), bytes.Repeat([]byte{255}, 40)} {
		stored, compressed, err := pack(b)
		if err != nil {
			t.Fatal(err)
		}
		h := HeaderSection{StoredLen: uint64(len(stored)), RawLen: uint64(len(b)), Hash: xxh3.Hash(stored), Zstd: compressed}
		_, err = h.Decode(stored)
		wantError(t, err, ErrCorrupt, "is not one of")
		h.Hash++
		_, err = h.Decode(stored)
		wantError(t, err, ErrCorrupt, "hash")
	}
}

// TestReader checks what Open does with readers that fail or have less than was said, and how often it reads.
func TestReader(t *testing.T) {
	file, _ := build(t, small(), fakeCode)
	_, err := Open(bytes.NewReader(file[:100]), int64(len(file)))
	wantError(t, err, ErrCorrupt, "ends at 100")
	_, err = Open(bytes.NewReader(nil), -5)
	wantError(t, err, ErrNotWcodec, "bytes")
	broken := errors.New("broken cable")
	_, err = Open(readerFunc(func([]byte, int64) (int, error) { return 0, broken }), 1<<40)
	if err != broken {
		t.Errorf("%v", err)
	}
	count := func(file io.ReaderAt, size int64) int {
		n := 0
		r := readerFunc(func(b []byte, at int64) (int, error) { n++; return file.ReadAt(b, at) })
		if _, err := Open(r, size); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(bytes.NewReader(file), int64(len(file))); n != 1 {
		t.Errorf("a small file takes %d reads", n)
	}
	big, size := sparse(t, 10, 1<<20)
	if n := count(big, size); n != 2 {
		t.Errorf("a large file takes %d reads", n)
	}
	if big, size = sparse(t, 20000, 1<<20); count(big, size) != 3 {
		t.Error("a large directory does not take 3 reads")
	}
}

type readerFunc func(b []byte, at int64) (int, error)

func (f readerFunc) ReadAt(b []byte, at int64) (int, error) { return f(b, at) }
