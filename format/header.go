package format

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// The magics open and close a file. A byte above 127, CR LF, LF alone and the end-of-file character of DOS are each
// damaged by some transfer that takes the file for text.
const (
	magic    = "\x89WCOD\r\n\x1a"
	endMagic = "\x1a\n\rDOCW\x89"
)

// knownRequired are the required features that this package reads: none so far.
const knownRequired = 0

// Header, 64 bytes: magic, u16 major, u16 minor, u32 zero, u64 required features, u64 optional features, zeros, and at
// 56 the xxh3-64 of what precedes it.
func appendHeader(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint16(dst, Major)
	dst = binary.LittleEndian.AppendUint16(dst, Minor)
	dst = append(dst, make([]byte, HeaderSize-8-4-8)...)
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[at:]))
}

// parseHeader checks the header b and fills in what the directory keeps of it.
func (d *Directory) parseHeader(b []byte) error {
	if string(b[:len(magic)]) != magic {
		// Text that was converted is known by its letters, a bit that was flipped by the hash that fits without it.
		if string(b[1:5]) == magic[1:5] || xxh3.HashString(magic+string(b[len(magic):56])) == binary.LittleEndian.Uint64(b[56:]) {
			return fmt.Errorf("opening magic %x is damaged: %w", b[:len(magic)], ErrCorrupt)
		}
		return fmt.Errorf("file begins with %x: %w", b[:len(magic)], ErrNotWcodec)
	}
	if xxh3.Hash(b[:56]) != binary.LittleEndian.Uint64(b[56:]) {
		return fmt.Errorf("header does not match its hash: %w", ErrCorrupt)
	}
	d.Major, d.Minor = binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:])
	if d.Major != Major || d.Minor != Minor {
		return fmt.Errorf("file has version %d.%d, this program reads %d.%d: %w", d.Major, d.Minor, Major, Minor, ErrUnsupported)
	}
	if f := binary.LittleEndian.Uint64(b[16:]); f&^knownRequired != 0 {
		return fmt.Errorf("file requires unknown features %#x: %w", f&^knownRequired, ErrUnsupported)
	}
	d.Optional = binary.LittleEndian.Uint64(b[24:])
	if binary.LittleEndian.Uint32(b[12:]) != 0 || CheckZero(b[32:56]) != nil {
		return fmt.Errorf("reserved bytes of the header are not zero: %w", ErrCorrupt)
	}
	return nil
}

// footer, 64 bytes: the five u64 below in order, u64 flags (1: the directory is a zstd frame), u64 hash, closing magic.
// The hash is the xxh3-64 of the file's header followed by the 48 bytes before the hash.
type footer struct {
	dirOffset, storedLen, rawLen, dirHash, fileLen uint64
	zstd                                           bool
}

func (f *footer) append(dst []byte, header []byte) []byte {
	at := len(dst)
	for _, v := range []uint64{f.dirOffset, f.storedLen, f.rawLen, f.dirHash, f.fileLen, bit(f.zstd)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = binary.LittleEndian.AppendUint64(dst, footerHash(header, dst[at:]))
	return append(dst, endMagic...)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func footerHash(header, fields []byte) uint64 {
	var b [HeaderSize + 48]byte
	copy(b[:], header)
	copy(b[HeaderSize:], fields)
	return xxh3.Hash(b[:])
}

// parseFooter checks the footer b of a file of the given header and size, so that the directory lies inside the file
// and its declared size is in proportion to its stored one.
func parseFooter(b, header []byte, size uint64) (f footer, err error) {
	if string(b[56:]) != endMagic {
		return f, fmt.Errorf("closing magic is missing, the file may be truncated: %w", ErrCorrupt)
	}
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	if footerHash(header, b[:48]) != u64(6) {
		return f, fmt.Errorf("footer does not match its hash: %w", ErrCorrupt)
	}
	f = footer{u64(0), u64(1), u64(2), u64(3), u64(4), u64(5) == 1}
	if u64(5) > 1 {
		return f, fmt.Errorf("unknown flags %#x in the footer: %w", u64(5), ErrCorrupt)
	}
	if f.fileLen != size {
		return f, fmt.Errorf("footer declares %d bytes of file, there are %d: %w", f.fileLen, size, ErrCorrupt)
	}
	if f.dirOffset < HeaderSize || f.dirOffset%ChunkAlign != 0 || f.dirOffset > size-FooterSize ||
		f.storedLen != size-FooterSize-f.dirOffset {
		return f, fmt.Errorf("directory of %d bytes at %d does not end at the footer: %w", f.storedLen, f.dirOffset, ErrCorrupt)
	}
	if err := checkStored("directory", f.storedLen, f.rawLen, MaxDirectory, f.zstd); err != nil {
		return f, err
	}
	return f, nil
}
