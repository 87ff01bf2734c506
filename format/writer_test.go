package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// TestHashes holds the hashes of other packages to their published values, for files depend on them.
func TestHashes(t *testing.T) {
	if h := xxh3.Hash(nil); h != 0x2d06800538d394c2 {
		t.Errorf("xxh3-64 of nothing is %#x", h)
	}
	if h := xxh3.Hash128(nil); h != (xxh3.Uint128{Hi: 0x99aa06d3014798d8, Lo: 0x6001c324468d497f}) {
		t.Errorf("xxh3-128 of nothing is %#x", h)
	}
}

func TestDigest(t *testing.T) {
	g := tensor.Geometry{UnitSize: 2, Rows: 1, Cols: 7, ChunkElems: 3, SegElems: 5}
	tail := []uint64{14, 2, 7, 0, 3, 5}
	var plain []byte
	d := NewDigest()
	for i := range uint64(1000) {
		sum := d.Sum(14, g)
		b := bytes.Clone(plain)
		for _, v := range tail {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		h := xxh3.Hash128(b)
		if binary.LittleEndian.Uint64(sum[:]) != h.Lo || binary.LittleEndian.Uint64(sum[8:]) != h.Hi {
			t.Fatalf("digest of %d chunks is %x", i, sum)
		}
		d.Add(i * i * 77777777)
		plain = binary.LittleEndian.AppendUint64(plain, i*i*77777777)
	}
}

func TestWriterRefuses(t *testing.T) {
	w, err := NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.MemberHeader(make([]byte, 7))
	wantError(t, err, ErrLimit, "header of 7 bytes")
	_, err = w.Segment(16, 0, make([]byte, MaxTable+1), nil, nil)
	wantError(t, err, ErrLimit, "table of 1048577")
	_, err = w.Segment(16, 0, nil, make([]IndexEntry, MaxChunks+1), nil)
	wantError(t, err, ErrLimit, "65537 chunks")
	two := func() []IndexEntry { return []IndexEntry{{Length: 10}, {Length: 20}} }
	full := make([]byte, 48)
	dirty := bytes.Clone(full)
	dirty[12] = 1
	for name, c := range map[string]struct {
		entries []IndexEntry
		data    [][]byte
		fact    string
	}{
		"nothing":            {two(), nil, "chunk 0 of 10 bytes"},
		"first not padded":   {two(), [][]byte{full[:10], full[:20]}, "chunk 0 of 10 bytes"},
		"padding":            {two(), [][]byte{dirty}, "chunk 0 of 10 bytes"},
		"last too short":     {two(), [][]byte{full[:16], full[:19]}, "chunk 1 of 20 bytes"},
		"chunk in two":       {two(), [][]byte{full[:32], full[:16]}, "chunk 1 of 20 bytes"},
		"more than declared": {two(), [][]byte{full, full[:1]}, "1 bytes behind"},
		"too long":           {[]IndexEntry{{Length: 1 << 24}}, [][]byte{make([]byte, 1<<24)}, "chunk 0 of 16777216"},
	} {
		_, err = w.Segment(16, 0, nil, c.entries, c.data)
		t.Run(name, func(t *testing.T) { wantError(t, err, ErrLimit, c.fact) })
	}
	for _, data := range [][][]byte{{full}, {full[:16], full[:32]}, {full[:36]}, {nil, full[:16], nil, full[:20], nil}} {
		s, err := w.Segment(16, 0, nil, two(), data)
		if err != nil || s.DataLen != 36 || w.Offset() != int64(s.End()) {
			t.Errorf("%v, %+v at %d", err, s, w.Offset())
		}
	}
}

// TestFinishRefuses gives Finish members that are not what was written.
func TestFinishRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(m []Member) []Member
		fact string
	}{
		"kind":            {func(m []Member) []Member { m[0].Kind = 2; return m }, "of kind 2"},
		"no blob":         {func(m []Member) []Member { m[0].Blob = nil; return m }, "of kind 0"},
		"blob too much":   {func(m []Member) []Member { m[2].Blob = m[0].Blob; return m }, "of kind 1"},
		"size":            {func(m []Member) []Member { m[2].Size++; return m }, "bytes, not"},
		"order":           {func(m []Member) []Member { m[0], m[2] = m[2], m[0]; return m }, "order of the directory"},
		"left out":        {func(m []Member) []Member { return m[1:] }, "the sections end at"},
		"name":            {func(m []Member) []Member { m[0].Name = "../x"; return m }, "relative path"},
		"segment missing": {func(m []Member) []Member { m[2].Tensors[3].Segments = nil; return m }, "directory to write"},
		"moved":           {func(m []Member) []Member { m[2].Tensors[3].Segments[1].Offset += 16; return m }, "order of the directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file, members := build(t, small(), fakeCode)
			d, err := open(file)
			if err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.write(file[HeaderSize:d.Offset]); err != nil {
				t.Fatal(err)
			}
			wantError(t, w.Finish(c.edit(members)), ErrLimit, c.fact)
		})
	}
}

// TestFullDisk lets the underlying writer fail at every byte.
func TestFullDisk(t *testing.T) {
	full := errors.New("disk full")
	plans := append(small(), plan{name: "large", blob: noise(5, 200000)})
	var whole bytes.Buffer
	buildTo(t, &whole, plans, rawCode)
	for room := 0; room < whole.Len(); room += 1 + room/20 {
		left := room
		w := writerFunc(func(b []byte) (int, error) {
			if n := left; n < len(b) {
				left = 0
				return n, full
			}
			left -= len(b)
			return len(b), nil
		})
		if err := writeAll(w, plans); !errors.Is(err, full) {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
	}
}

// writeAll is build, but returns the error that build ends the test with.
func writeAll(w io.Writer, plans []plan) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	buildTo(panicker{}, w, plans, rawCode)
	return nil
}

type panicker struct{}

func (panicker) Helper()        {}
func (panicker) Fatal(v ...any) { panic(v[0]) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
