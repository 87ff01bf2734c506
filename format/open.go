package format

import (
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
)

// tailSize is what Open reads from the end of a file. Few directories are larger.
const tailSize = 64 << 10

// Open reads header, footer and directory of the file of size bytes in r: in one read where the file is no larger than
// 64 KiB, else in two, and in three where the directory is larger than that. It reads no member header, no segment and
// no padding: see Directory.Gaps. Errors of r are returned as they are; the others wrap ErrNotWcodec, ErrUnsupported or
// ErrCorrupt.
func Open(r io.ReaderAt, size int64) (*Directory, error) {
	if size < HeaderSize+FooterSize {
		return nil, openShort(r, size)
	}
	tail := make([]byte, min(size, tailSize))
	tailAt := size - int64(len(tail))
	if err := readAt(r, tail, tailAt); err != nil {
		return nil, err
	}
	header := tail[:HeaderSize]
	if tailAt > 0 {
		header = make([]byte, HeaderSize)
		if err := readAt(r, header, 0); err != nil {
			return nil, err
		}
	}
	d := &Directory{Size: uint64(size)}
	if err := d.parseHeader(header); err != nil {
		return nil, err
	}
	f, err := parseFooter(tail[len(tail)-FooterSize:], header, d.Size)
	if err != nil {
		return nil, err
	}
	d.Offset, d.StoredLen = f.dirOffset, f.storedLen
	stored := tail[:len(tail)-FooterSize]
	if missing := tailAt - int64(f.dirOffset); missing > 0 {
		whole := make([]byte, f.storedLen)
		if err := readAt(r, whole[:missing], int64(f.dirOffset)); err != nil {
			return nil, err
		}
		copy(whole[missing:], stored)
		stored = whole
	} else {
		stored = stored[-missing:]
	}
	if xxh3.Hash(stored) != f.dirHash {
		return nil, fmt.Errorf("directory does not match its hash: %w", ErrCorrupt)
	}
	raw, err := unpack("directory", stored, f.rawLen, f.zstd)
	if err != nil {
		return nil, err
	}
	if d.Members, err = parseDirectory(string(raw), d.Offset); err != nil {
		return nil, err
	}
	return d, nil
}

// openShort says what is wrong with a file that is too short for a header and a footer.
func openShort(r io.ReaderAt, size int64) error {
	b := make([]byte, max(0, size))
	if err := readAt(r, b, 0); err != nil {
		return err
	}
	if n := min(len(b), len(magic)); n == 0 || string(b[:n]) != magic[:n] {
		return fmt.Errorf("file of %d bytes: %w", size, ErrNotWcodec)
	}
	return fmt.Errorf("file of %d bytes is truncated: %w", size, ErrCorrupt)
}

// readAt fills b. A reader that has less than the size it was declared with makes a corrupt file.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("file ends at %d, inside what it declares: %w", at+int64(n), ErrCorrupt)
	}
	return err
}
