package format

import (
	"bufio"
	"fmt"
	"io"
	"iter"

	"github.com/zeebo/xxh3"
)

// Writer writes a file front to back. The order of the calls is the order of the directory: for each member its header
// if it has one, then the segments of its tensors in order, then those of its blob or trailing bytes; at the end
// Finish. After an error of the underlying writer every call fails. It is for one goroutine.
type Writer struct {
	w      *bufio.Writer
	at     uint64
	header []byte
	meta   []byte // scratch
}

// NewWriter writes the header of a file to w.
func NewWriter(w io.Writer) (*Writer, error) {
	f := &Writer{w: bufio.NewWriterSize(w, 64<<10), header: appendHeader(nil)}
	if err := f.write(f.header); err != nil {
		return nil, err
	}
	return f, nil
}

// Offset is the number of bytes written so far. After Finish it is the size of the file.
func (w *Writer) Offset() int64 { return int64(w.at) }

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.at += uint64(n)
	return err
}

var zeros [4096]byte

func (w *Writer) pad(align uint64) error { return w.write(zeros[:alignUp(w.at, align)-w.at]) }

// MemberHeader writes the header b of a safetensors file, its leading length included.
func (w *Writer) MemberHeader(b []byte) (HeaderSection, error) {
	if len(b) < 8 || len(b) > MaxMemberHeader {
		return HeaderSection{}, fmt.Errorf("header of %d bytes: %w", len(b), ErrLimit)
	}
	stored, compressed, err := pack(b)
	if err != nil {
		return HeaderSection{}, err
	}
	if err := w.pad(ChunkAlign); err != nil {
		return HeaderSection{}, err
	}
	h := HeaderSection{
		Offset: w.at, StoredLen: uint64(len(stored)), RawLen: uint64(len(b)),
		Hash: xxh3.Hash(stored), Zstd: compressed,
	}
	return h, w.write(stored)
}

// Segment writes a segment of a tensor of tensorBytes bytes. Of the entries it fills in the offsets. data is the stored
// chunks, in order, each padded with zeros to a multiple of ChunkAlign bytes, in as many pieces as suits the caller:
// each piece is whole padded chunks. Only the last chunk may go without its padding, which is not written anyway.
func (w *Writer) Segment(tensorBytes uint64, code uint8, table []byte, entries []IndexEntry, data [][]byte) (Segment, error) {
	if len(entries) > MaxChunks || len(table) > MaxTable {
		return Segment{}, fmt.Errorf("segment of %d chunks with a table of %d bytes: %w", len(entries), len(table), ErrLimit)
	}
	s := Segment{TableLen: len(table), Chunks: len(entries), Code: code}
	if err := s.layOut(entries, data); err != nil {
		return Segment{}, err
	}
	w.meta = w.meta[:0]
	for i := range entries {
		w.meta = appendEntry(w.meta, &entries[i])
	}
	w.meta = append(w.meta, table...)
	w.meta = append(w.meta, zeros[:s.MetaLen()-len(w.meta)]...)
	s.MetaHash = xxh3.Hash(w.meta)
	if err := w.pad(Align(tensorBytes)); err != nil {
		return Segment{}, err
	}
	s.Offset = w.at
	if err := w.write(w.meta); err != nil {
		return Segment{}, err
	}
	left := s.DataLen
	for _, b := range data {
		n := min(left, uint64(len(b)))
		if err := w.write(b[:n]); err != nil {
			return Segment{}, err
		}
		left -= n
	}
	return s, nil
}

// layOut sets the offsets of the entries and the length of the data, and checks that data has the chunks there.
func (s *Segment) layOut(entries []IndexEntry, data [][]byte) error {
	next, piece, pieces := uint64(0), []byte(nil), 0
	for i := range entries {
		e := &entries[i]
		for len(piece) == 0 && e.Length > 0 && pieces < len(data) {
			piece, pieces = data[pieces], pieces+1
		}
		e.Offset = next
		s.DataLen = next + uint64(e.Length)
		next = alignUp(s.DataLen, ChunkAlign)
		padded := int(next - e.Offset)
		if i == len(entries)-1 {
			padded = min(padded, max(len(piece), int(e.Length)))
		}
		if e.Length > lengthMask || padded > len(piece) || CheckZero(piece[e.Length:padded]) != nil {
			return fmt.Errorf("chunk %d of %d bytes is not in its place, padded: %w", i, e.Length, ErrLimit)
		}
		piece = piece[padded:]
	}
	for ; pieces < len(data) && len(piece) == 0; pieces++ {
		piece = data[pieces]
	}
	if len(piece) != 0 {
		return fmt.Errorf("%d bytes behind the last chunk: %w", len(piece), ErrLimit)
	}
	return nil
}

// Finish writes directory and footer and flushes. The members are those written, with what MemberHeader and Segment
// returned. The directory is parsed back, and compared in its offsets and sizes, before it is written.
func (w *Writer) Finish(members []Member) error {
	for i := range members {
		if m := &members[i]; m.Kind > KindSafetensors || (m.Kind == KindBlob) != (m.Blob != nil) {
			return fmt.Errorf("member %q of kind %d: %w", m.Name, m.Kind, ErrLimit)
		}
	}
	raw := appendDirectory(nil, members)
	if len(raw) > MaxDirectory {
		return fmt.Errorf("directory of %d bytes: %w", len(raw), ErrLimit)
	}
	if err := w.pad(ChunkAlign); err != nil {
		return err
	}
	f := footer{dirOffset: w.at, rawLen: uint64(len(raw))}
	if err := checkOwn(raw, f.dirOffset, members); err != nil {
		return err
	}
	stored, compressed, err := pack(raw)
	if err != nil {
		return err
	}
	f.zstd, f.storedLen, f.dirHash = compressed, uint64(len(stored)), xxh3.Hash(stored)
	f.fileLen = f.dirOffset + f.storedLen + FooterSize
	if err := w.write(stored); err != nil {
		return err
	}
	if err := w.write(f.append(nil, w.header)); err != nil {
		return err
	}
	return w.w.Flush()
}

// checkOwn parses a directory before it is written.
func checkOwn(raw []byte, offset uint64, members []Member) error {
	parsed, err := parseDirectory(string(raw), offset)
	if err != nil {
		return fmt.Errorf("directory to write: %v: %w", err, ErrLimit)
	}
	for i := range parsed {
		if parsed[i].Size != members[i].Size {
			return fmt.Errorf("member %q has %d bytes, not %d: %w", members[i].Name, parsed[i].Size, members[i].Size, ErrLimit)
		}
	}
	next, stop := iter.Pull((&Directory{Members: parsed}).sections)
	defer stop()
	for s := range (&Directory{Members: members}).sections {
		if want, _ := next(); s != want {
			return fmt.Errorf("section of %d bytes at %d was not written in the order of the directory: %w", s.Length, s.Offset, ErrLimit)
		}
	}
	return nil
}
