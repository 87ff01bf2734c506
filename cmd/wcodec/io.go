package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/wcodec/wcodec"
)

// ext is what a packed file or directory has at the end of its name.
const ext = ".wcodec"

// stdinName is the member name of what comes on standard input.
const stdinName = "stdin"

// dataOut is standard output as a place for data. A terminal is refused: it shows noise and may obey it.
func (a *app) dataOut() (*os.File, error) {
	a.grace.Store(int64(graceStdout))
	if term.IsTerminal(int(os.Stdout.Fd())) {
		return nil, usagef("binary data is not written to a terminal; name a file with -o or redirect the output")
	}
	return os.Stdout, nil
}

// dataIn is standard input as a source of data.
func dataIn() (*os.File, error) {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, usagef("standard input is a terminal; name a file or redirect the input")
	}
	return os.Stdin, nil
}

// kind of an input path.
type kind int

const (
	kindFile   kind = iota
	kindDir         // a checkpoint directory
	kindStream      // standard input, a pipe, a device: read once, front to back
)

func kindOf(path string) (kind, error) {
	if path == "-" {
		return kindStream, nil
	}
	st, err := os.Stat(path)
	switch {
	case path == "":
		return 0, usagef("an empty name is no input")
	case err != nil:
		return 0, shortError(err)
	case st.IsDir():
		return kindDir, nil
	case st.Mode().IsRegular():
		return kindFile, nil
	}
	return kindStream, nil
}

// openStream opens an input of kindStream. Opening a named pipe waits for its writer, and reading waits for data; ctx
// ends both.
func openStream(ctx context.Context, path string) (r io.Reader, size int64, err error) {
	if path == "-" {
		f, err := dataIn()
		if err != nil {
			return nil, 0, err
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			if off, err := f.Seek(0, io.SeekCurrent); err == nil && off == 0 {
				return f, st.Size(), nil
			}
		}
		return interruptible(ctx, f), -1, nil
	}
	type opened struct {
		f   *os.File
		err error
	}
	ch := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		ch <- opened{f, err}
	}()
	select {
	case o := <-ch:
		if o.err != nil {
			return nil, 0, shortError(o.err)
		}
		return interruptible(ctx, o.f), -1, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// interruptible reads r on a goroutine of its own, so that a read which waits for data ends with ctx.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	go func() {
		buf := make([]byte, 1<<20)
		// Both sides are hidden, or io.CopyBuffer would take a way of its own with small buffers.
		_, err := io.CopyBuffer(struct{ io.Writer }{pw}, struct{ io.Reader }{r}, buf)
		pw.CloseWithError(err)
	}()
	return pr
}

// openPacked opens a .wcodec file; "-" and pipes are spooled to a temporary file first, for the directory is at the end.
func openPacked(ctx context.Context, path string) (*wcodec.Reader, error) {
	k, err := kindOf(path)
	if err != nil {
		return nil, err
	}
	if k != kindStream {
		return wcodec.Open(path)
	}
	f, err := spool(ctx, path)
	if err != nil {
		return nil, err
	}
	return wcodec.NewReader(f, f.size)
}

// spooled is a stream in a temporary file. Nothing is left of it after the process where open files can be removed.
type spooled struct {
	*os.File
	size int64
	name string
}

func (s *spooled) Name() string { return s.name }

func spool(ctx context.Context, path string) (*spooled, error) {
	r, size, err := openStream(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &spooled{size: size, name: path}
	if path == "-" {
		s.name = stdinName
	}
	if f, ok := r.(*os.File); ok { // a file after all
		s.File = f
		return s, nil
	}
	if s.File, err = os.CreateTemp("", ".wcodec-tmp-*"); err != nil {
		return nil, fmt.Errorf("spool %s: %w", s.name, err)
	}
	os.Remove(s.File.Name()) // on systems that refuse, the system's own cleaning of its folder does it
	if s.size, err = io.Copy(s.File, r); err != nil {
		return nil, fmt.Errorf("spool %s: %w", s.name, err)
	}
	return s, nil
}

// isDir reports whether path is an existing directory, or says by its ending that it is to be one.
func isDir(path string) bool {
	if strings.HasSuffix(path, "/") || os.IsPathSeparator(path[len(path)-1]) {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// fileTarget is the output path of a file: beside says where it goes without -o.
func (a *app) fileTarget(beside string) (string, error) {
	if a.out == "" {
		return beside, nil
	}
	if !isDir(a.out) {
		return a.out, nil
	}
	if err := os.MkdirAll(a.out, 0o777); err != nil {
		return "", shortError(err)
	}
	return filepath.Join(a.out, filepath.Base(beside)), nil
}

// dirTarget is the output path of a directory. With one input -o names the directory itself, so that a second run
// resumes the first; with several it names their parent.
func (a *app) dirTarget(beside string, several bool) (string, error) {
	switch {
	case a.out == "":
		return beside, nil
	case several:
		if err := os.MkdirAll(a.out, 0o777); err != nil {
			return "", shortError(err)
		}
		return filepath.Join(a.out, filepath.Base(beside)), nil
	}
	return a.out, nil
}

// notItself refuses an output that is one of the inputs.
func notItself(out string, inputs ...string) error {
	o, err := os.Stat(out)
	if err != nil {
		return nil // nothing there, or nothing that can be written: creating it says which
	}
	for _, in := range inputs {
		if i, err := os.Stat(in); err == nil && os.SameFile(o, i) {
			return usagef("output %s is the input %s", out, in)
		}
	}
	return nil
}

// stripped is the name of what a packed path holds.
func stripped(path string) (string, error) {
	path = filepath.Clean(path)
	base := filepath.Base(path)
	if len(base) <= len(ext) || !strings.EqualFold(base[len(base)-len(ext):], ext) {
		return "", usagef("%s does not end in %s, so the output's name is not clear; give it with -o", path, ext)
	}
	return path[:len(path)-len(ext)], nil
}

// removeInput is --rm. What went to a device or a pipe is as good as standard output: it may be nowhere.
func (a *app) removeInput(path string) error {
	if !a.rm || a.stdout || a.dryRun || path == "-" {
		return nil
	}
	if st, err := os.Stat(a.out); a.out != "" && err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("done, but the input stays: %w", err)
	}
	return nil
}

// removeFiles is --rm for a directory: the files that were packed from it, then what is left empty. A file that came
// later stays, and so do the directories around it.
func (a *app) removeFiles(dir string, files []wcodec.DirFile) error {
	for _, f := range files {
		if f.How == wcodec.HowDir {
			continue
		}
		if err := a.removeInput(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return err
		}
	}
	a.removeEmpty(dir)
	return nil
}

// removeEmpty removes the empty directories at and below dir.
func (a *app) removeEmpty(dir string) {
	if st, err := os.Lstat(dir); !a.rm || err != nil || !st.IsDir() {
		return
	}
	var dirs []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	for _, d := range slices.Backward(dirs) { // a directory comes before what is in it
		os.Remove(d) // fails where it is not empty, as it should
	}
}

func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// several refuses -o FILE and standard output where each of many inputs has an output of its own, and "-" given twice.
func (a *app) several(args []string) error {
	dashes := 0
	for _, arg := range args {
		if arg == "-" {
			dashes++
		}
	}
	if dashes > 1 {
		return usagef("standard input can be read once only")
	}
	if len(args) > 1 && a.stdout {
		return usagef("%d inputs and one standard output: take them one by one", len(args))
	}
	if len(args) > 1 && a.out != "" && !isDir(a.out) {
		return usagef("%d inputs and one output %s: name a directory, such as %s/", len(args), a.out, a.out)
	}
	return nil
}
