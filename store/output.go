package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"unicode/utf8"
)

// tempMark is in the name of every temporary file, so that leftovers of a killed process can be recognised.
const tempMark = ".wcodec-tmp-"

// maxName is a name length that every common file system takes.
const maxName = 255

// Output is a file that appears at its path whole, at Commit, or not at all. Until then it is a temporary file in the
// same directory. Whoever creates one calls Commit or Abort; a call of either after the first does nothing.
type Output struct {
	f         *os.File
	path      string // what the caller asked for, for messages
	target    string // path with symbolic links followed
	overwrite bool
	direct    bool // a device or a pipe: written as it is
	done      bool
	written   atomic.Int64
}

// flushBytes is after how many written bytes the system is told to start writing them out, so that the flush at
// Commit finds little left to do.
const flushBytes = 8 << 20

// Create starts an output at path. Without overwrite it fails with ErrExists where something is there, now and again
// at Commit. A device or a named pipe at path is written directly.
func Create(path string, overwrite bool) (*Output, error) {
	o := &Output{path: path, target: path, overwrite: overwrite}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !overwrite {
		if _, lerr := os.Lstat(path); lerr == nil { // a link that leads nowhere
			return nil, fmt.Errorf("%s: %w", path, ErrExists)
		}
	}
	switch {
	case err == nil && st.IsDir():
		return nil, fmt.Errorf("%s: is a directory: %w", path, ErrNotRegular)
	case err == nil && !st.Mode().IsRegular():
		o.direct = true
		if o.f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, o.fail(err)
		}
		return o, nil
	case err == nil && !overwrite:
		return nil, fmt.Errorf("%s: %w", path, ErrExists)
	case err == nil:
		if o.target, err = filepath.EvalSymlinks(path); err != nil {
			return nil, o.fail(err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, o.fail(err)
	}
	if err := o.createTemp(); err != nil {
		return nil, o.fail(err)
	}
	if st != nil {
		if err := o.f.Chmod(st.Mode().Perm()); err != nil {
			o.Abort()
			return nil, o.fail(err)
		}
	}
	return o, nil
}

func (o *Output) createTemp() error {
	dir, base := filepath.Split(o.target)
	for range 100 {
		mark := fmt.Sprintf("%s%016x", tempMark, rand.Uint64())
		f, err := os.OpenFile(filepath.Join(dir, "."+clip(base, maxName-1-len(mark))+mark), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		o.f = f
		return err
	}
	return errors.New("no free temporary name")
}

// clip cuts s to at most n bytes at the start of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// IsTemp reports whether a file's base name is that of a temporary file of an Output.
func IsTemp(name string) bool {
	i := strings.LastIndex(name, tempMark)
	return i > 0 && name[0] == '.' && len(name)-i-len(tempMark) == 16
}

// fail puts the path that the caller knows in place of the temporary one.
func (o *Output) fail(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	if errors.Is(err, syscall.EFAULT) { // the bytes to write were mapped, and gone
		err = ErrFault
	}
	return fmt.Errorf("%s: %w", o.path, err)
}

// Path is the path given to Create.
func (o *Output) Path() string { return o.path }

// Regular reports whether the output is a file that can be written at offsets and read back, not a device or a pipe.
func (o *Output) Regular() bool { return !o.direct }

// Write appends to the output.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	o.count(n)
	if err != nil {
		err = o.fail(err)
	}
	return n, err
}

// WriteAt writes at an offset; ranges that do not overlap may be written by several goroutines at once. It does not
// mix with Write.
func (o *Output) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.f.WriteAt(p, off)
	o.count(n)
	if err != nil {
		err = o.fail(err)
	}
	return n, err
}

func (o *Output) count(n int) {
	total := o.written.Add(int64(n))
	if total/flushBytes != (total-int64(n))/flushBytes && !o.direct {
		startFlush(o.f)
	}
}

// File returns what was written so far as a File, to be read back before Commit. It is not valid after Commit or Abort,
// but its views are. A direct output fails with ErrNotRegular.
func (o *Output) File() (File, error) {
	if o.direct {
		return nil, fmt.Errorf("%s: %w", o.path, ErrNotRegular)
	}
	return newOSFile(o.f, false)
}

// Commit makes the output durable and gives it its name. On error the temporary file is gone and what was at the path
// is untouched, unless only the directory could not be flushed, after the output had its name.
func (o *Output) Commit() error {
	if o.done {
		return nil
	}
	if o.direct {
		o.done = true
		return o.f.Close()
	}
	if err := o.f.Sync(); err != nil {
		o.Abort()
		return o.fail(err)
	}
	o.done = true
	temp := o.f.Name()
	err := o.f.Close()
	if err == nil {
		if o.overwrite {
			err = os.Rename(temp, o.target)
		} else {
			err = publish(temp, o.target, os.Link)
		}
	}
	if err != nil {
		os.Remove(temp)
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return o.fail(err)
	}
	if err := syncDir(filepath.Dir(o.target)); err != nil {
		return o.fail(err)
	}
	return nil
}

// publish gives temp the name target unless that is taken. A hard link does it in one step. Where there are no hard
// links, an empty file reserves the name first.
func publish(temp, target string, link func(from, to string) error) error {
	err := link(temp, target)
	if err == nil {
		return os.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// Abort removes what was written. The path is untouched.
func (o *Output) Abort() error {
	if o.done {
		return nil
	}
	o.done = true
	err := o.f.Close()
	if o.direct {
		return err
	}
	if rerr := os.Remove(o.f.Name()); rerr != nil {
		return o.fail(rerr)
	}
	return nil
}
