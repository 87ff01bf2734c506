// Package store is where bytes are: files read through windows of memory, streams spooled to disk, and outputs that
// appear whole or not at all. It knows nothing of what the bytes mean, and it keeps no global state.
//
// A mapped file can shrink under its reader, which the kernel answers with a signal. Code that touches the bytes of a
// View runs inside Guard, which makes an error of it.
package store

import (
	"errors"
	"fmt"
	"io"
)

// Slack is how many bytes beyond the end of a view its capacity may reach, so that kernels can over-read.
const Slack = 4096

// Errors of this package; all are returned wrapped, with the path.
var (
	// ErrExists says that an output is there already and was not to be replaced.
	ErrExists = errors.New("output exists")
	// ErrFault says that mapped bytes could not be read: the file shrank, or the device under it failed.
	ErrFault = errors.New("mapped file could not be read: it shrank or its device failed")
	// ErrRange says that bytes were asked for which lie outside the file.
	ErrRange = errors.New("range outside the file")
	// ErrNotRegular says that a regular file was needed and something else was there.
	ErrNotRegular = errors.New("not a regular file")
)

// File is a run of bytes of known size that can be read anywhere, by several goroutines at once.
type File interface {
	io.ReaderAt
	io.Closer
	// Name is the path, or what stands for it in messages.
	Name() string
	// Size is the number of bytes, as it was when the file was opened.
	Size() int64
	// Map makes n bytes from offset off readable in memory. It fails with ErrRange where they are not in the file.
	// Views outlive the file's Close.
	Map(off, n int64) (*View, error)
}

// View is a read-only window of a File. Writing to its bytes kills the process.
type View struct {
	b       []byte
	mapped  []byte // the pages, where there are any
	release func() error
}

// NewView returns a view of b that calls release, which may be nil, when it is closed.
func NewView(b []byte, release func() error) *View { return &View{b: b, release: release} }

// Bytes returns the window, its length as asked for. Its capacity reaches up to Slack bytes further where there are
// bytes (their values mean nothing). It is not valid after Close.
func (v *View) Bytes() []byte { return v.b }

// Populate has the system read and map the whole window at once, for a caller that will touch all of it: that is
// cheaper than a fault for every few pages, and prefetching works only on pages that are mapped. Where the system
// cannot, or a file has shrunk, nothing happens.
func (v *View) Populate() { populate(v.mapped) }

// Close gives the window back. A second call does nothing.
func (v *View) Close() error {
	release := v.release
	v.b, v.mapped, v.release = nil, nil, nil
	if release == nil {
		return nil
	}
	return release()
}

// checkRange says whether n bytes at off lie in a file of size bytes.
func checkRange(name string, off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return fmt.Errorf("%s: bytes %d to %d of %d: %w", name, off, uint64(off)+uint64(n), size, ErrRange)
	}
	return nil
}

// readerAt is a File whose views are copies.
type readerAt struct {
	io.ReaderAt
	name string
	size int64
}

// FromReaderAt makes a File of the first size bytes of r, which has no Close to call. Its views are copies.
func FromReaderAt(name string, r io.ReaderAt, size int64) File {
	return &readerAt{ReaderAt: r, name: name, size: size}
}

func (f *readerAt) Name() string { return f.name }
func (f *readerAt) Size() int64  { return f.size }
func (f *readerAt) Close() error { return nil }

func (f *readerAt) Map(off, n int64) (*View, error) {
	if err := checkRange(f.name, off, n, f.size); err != nil {
		return nil, err
	}
	return readView(f.name, f.ReaderAt, off, n, f.size)
}

// readView copies n bytes at off, and what slack the file has beyond, into a view.
func readView(name string, r io.ReaderAt, off, n, size int64) (*View, error) {
	buf := make([]byte, n+Slack)
	want := min(n+Slack, size-off)
	got, err := r.ReadAt(buf[:want], off)
	if int64(got) < n {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return NewView(buf[:n], nil), nil
}

type bytesFile struct {
	name string
	b    []byte
}

// FromBytes makes a File of b. Its views are parts of b itself.
func FromBytes(name string, b []byte) File { return &bytesFile{name: name, b: b} }

func (f *bytesFile) Name() string { return f.name }
func (f *bytesFile) Size() int64  { return int64(len(f.b)) }
func (f *bytesFile) Close() error { return nil }

func (f *bytesFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: offset %d: %w", f.name, off, ErrRange)
	}
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *bytesFile) Map(off, n int64) (*View, error) {
	if err := checkRange(f.name, off, n, f.Size()); err != nil {
		return nil, err
	}
	end := off + n
	return NewView(f.b[off:end:min(end+Slack, f.Size())], nil), nil
}
