package store

import (
	"io"
	"os"
	"runtime"
)

// spooled is a temporary file that is gone when it is closed.
type spooled struct {
	*osFile
	name string
	path string // not yet removed, where an open file cannot be
}

// Spool copies r to its end into a temporary file in dir (the system's place for them where dir is empty) and returns
// it under the given name. Nothing of it is left after Close, nor after the death of the process on systems that can
// remove open files.
func Spool(name string, r io.Reader, dir string) (File, error) {
	f, err := os.CreateTemp(dir, "."+tempMark[1:]+"*")
	if err != nil {
		return nil, err
	}
	s := &spooled{name: name}
	if runtime.GOOS == "windows" || os.Remove(f.Name()) != nil {
		s.path = f.Name()
	}
	drop := func(err error) (File, error) {
		f.Close()
		s.remove()
		return nil, err
	}
	n, err := io.Copy(f, r)
	if err != nil {
		return drop(err)
	}
	s.osFile = &osFile{File: f, size: n, own: true}
	return s, nil
}

func (s *spooled) Name() string { return s.name }

func (s *spooled) remove() error {
	if s.path == "" {
		return nil
	}
	return os.Remove(s.path)
}

func (s *spooled) Close() error {
	err := s.osFile.Close()
	if rerr := s.remove(); err == nil {
		err = rerr
	}
	return err
}
