package store

import (
	"fmt"
	"os"
)

// osFile is a regular file of the operating system, mapped where that works.
type osFile struct {
	*os.File
	size int64
	own  bool // Close closes the file
}

// Open opens the regular file at path.
func Open(path string) (File, error) {
	// Opening a named pipe waits for a writer, so look first.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := newOSFile(f, true)
	if err != nil {
		f.Close()
		return nil, err
	}
	return file, nil
}

// FromOSFile makes a File of an open regular file, which stays the caller's to close. It reads from the start of the
// file wherever f's offset stands, and fails with ErrNotRegular for a pipe, a terminal or a directory.
func FromOSFile(f *os.File) (File, error) { return newOSFile(f, false) }

func newOSFile(f *os.File, own bool) (File, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", f.Name(), ErrNotRegular)
	}
	return &osFile{File: f, size: st.Size(), own: own}, nil
}

func (f *osFile) Size() int64 { return f.size }

func (f *osFile) Close() error {
	if !f.own {
		return nil
	}
	return f.File.Close()
}

func (f *osFile) Map(off, n int64) (*View, error) {
	if err := checkRange(f.Name(), off, n, f.size); err != nil {
		return nil, err
	}
	if n == 0 {
		return NewView([]byte{}, nil), nil
	}
	return f.mapRange(off, n)
}
