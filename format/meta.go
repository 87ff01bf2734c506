package format

import (
	"encoding/binary"
	"fmt"

	"github.com/wcodec/wcodec/tensor"
	"github.com/zeebo/xxh3"
)

// IndexEntry is the entry of one chunk in the index of its segment.
//
// Stored it takes 24 bytes: u32 offset in units of 16 bytes, u32 length in the low 24 bits with the flags above it (bit
// 31: raw), u64 checksum of the stored bytes, u64 checksum of the decoded bytes.
type IndexEntry struct {
	Offset  uint64 // from the start of the segment's data; a multiple of 16
	Stored  uint64 // checksum of the stored bytes (package checksum)
	Decoded uint64 // checksum of the decoded bytes
	Length  uint32 // stored bytes
	Raw     bool   // stored as the units themselves, whatever the code
}

const (
	rawFlag    = 1 << 31
	lengthMask = 1<<24 - 1
)

func appendEntry(dst []byte, e *IndexEntry) []byte {
	l := e.Length
	if e.Raw {
		l |= rawFlag
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Offset/ChunkAlign))
	dst = binary.LittleEndian.AppendUint32(dst, l)
	dst = binary.LittleEndian.AppendUint64(dst, e.Stored)
	return binary.LittleEndian.AppendUint64(dst, e.Decoded)
}

// ParseMeta checks the MetaLen bytes of the segment before its data, and returns its index, appended to dst, and its
// table, which is a part of meta. chunks are the chunks of the segment, as tensor.Geometry.AppendChunks gives them, of
// units of unitSize bytes. Errors wrap ErrCorrupt. What it returns is inside the data: the chunks stand in order, each
// at the first multiple of 16 after the one before, the last ends where the data does, and none is longer than its
// units.
func (s *Segment) ParseMeta(dst []IndexEntry, meta []byte, chunks []tensor.Chunk, unitSize int) (index []IndexEntry, table []byte, err error) {
	if len(chunks) != s.Chunks || len(meta) != s.MetaLen() {
		return nil, nil, fmt.Errorf("segment of %d chunks with %d bytes of metadata: %w", len(chunks), len(meta), ErrCorrupt)
	}
	if xxh3.Hash(meta) != s.MetaHash {
		return nil, nil, fmt.Errorf("index and table do not match their hash: %w", ErrCorrupt)
	}
	tableAt := s.Chunks * IndexEntrySize
	table = meta[tableAt : tableAt+s.TableLen : tableAt+s.TableLen]
	if CheckZero(meta[tableAt+s.TableLen:]) != nil {
		return nil, nil, fmt.Errorf("padding of the table is not zero: %w", ErrCorrupt)
	}
	next, end := uint64(0), uint64(0)
	for i, c := range chunks {
		b := meta[i*IndexEntrySize:]
		l := binary.LittleEndian.Uint32(b[4:])
		e := IndexEntry{
			Offset:  uint64(binary.LittleEndian.Uint32(b)) * ChunkAlign,
			Length:  l & lengthMask,
			Raw:     l&rawFlag != 0,
			Stored:  binary.LittleEndian.Uint64(b[8:]),
			Decoded: binary.LittleEndian.Uint64(b[16:]),
		}
		if l&^(rawFlag|lengthMask) != 0 {
			return nil, nil, fmt.Errorf("chunk %d: unknown flags %#x: %w", i, l>>24, ErrCorrupt)
		}
		if err := e.check(uint64(c.Elems()) * uint64(unitSize)); err != nil {
			return nil, nil, fmt.Errorf("chunk %d: %w", i, err)
		}
		if e.Offset != next {
			return nil, nil, fmt.Errorf("chunk %d is at %d of the data, not at %d: %w", i, e.Offset, next, ErrCorrupt)
		}
		end = e.Offset + uint64(e.Length)
		next = alignUp(end, ChunkAlign)
		dst = append(dst, e)
	}
	if end != s.DataLen {
		return nil, nil, fmt.Errorf("chunks end at %d of %d bytes of data: %w", end, s.DataLen, ErrCorrupt)
	}
	return dst, table, nil
}

// check compares the entry with the size of the chunk's units.
func (e *IndexEntry) check(decoded uint64) error {
	switch {
	case e.Raw && uint64(e.Length) != decoded:
		return fmt.Errorf("%d bytes stored raw for %d: %w", e.Length, decoded, ErrCorrupt)
	case e.Raw && e.Stored != e.Decoded:
		return fmt.Errorf("checksums of raw bytes differ: %w", ErrCorrupt)
	case uint64(e.Length) > decoded:
		return fmt.Errorf("%d bytes stored for %d: %w", e.Length, decoded, ErrCorrupt)
	}
	return nil
}

// CheckPadding checks that every byte of data that belongs to no chunk of index is zero. data starts where the first
// of these chunks does and ends no earlier than the last. The error wraps ErrCorrupt.
func CheckPadding(data []byte, index []IndexEntry) error {
	for i := range index {
		e := &index[i]
		from, to := e.Offset-index[0].Offset+uint64(e.Length), uint64(len(data))
		if i+1 < len(index) {
			to = index[i+1].Offset - index[0].Offset
		}
		if from > to || to > uint64(len(data)) {
			return fmt.Errorf("chunk %d of a run does not fit its %d bytes: %w", i, len(data), ErrCorrupt)
		}
		if CheckZero(data[from:to]) != nil {
			return fmt.Errorf("padding after chunk %d of a run is not zero: %w", i, ErrCorrupt)
		}
	}
	return nil
}

// CheckZero checks that every byte of b is zero. The error wraps ErrCorrupt.
func CheckZero(b []byte) error {
	for _, x := range b {
		if x != 0 {
			return fmt.Errorf("padding is not zero: %w", ErrCorrupt)
		}
	}
	return nil
}

// Decode checks the stored bytes of the section and returns the original header, the leading length included. The
// result may be stored itself. Errors wrap ErrCorrupt.
func (h *HeaderSection) Decode(stored []byte) ([]byte, error) {
	if uint64(len(stored)) != h.StoredLen || xxh3.Hash(stored) != h.Hash {
		return nil, fmt.Errorf("header of the member does not match its hash: %w", ErrCorrupt)
	}
	b, err := unpack("header of the member", stored, h.RawLen, h.Zstd)
	if err != nil {
		return nil, err
	}
	if len(b) < 8 || binary.LittleEndian.Uint64(b) != uint64(len(b)-8) {
		return nil, fmt.Errorf("header of the member is not one of %d bytes: %w", h.RawLen, ErrCorrupt)
	}
	return b, nil
}
