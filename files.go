package wcodec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wcodec/wcodec/store"
)

// CompressFile compresses the files srcs into one .wcodec file at dst. The output appears whole or not at all: it
// is written under a temporary name in the same directory, made durable, opened again as a reader would, and renamed.
// Without Options.Overwrite an existing dst is an error that wraps ErrExists.
func CompressFile(ctx context.Context, dst string, srcs []string, o Options) (Stats, error) {
	var list []Source
	for _, path := range srcs {
		f, err := openSource(path, dst)
		if err != nil {
			return Stats{}, err
		}
		defer f.Close()
		list = append(list, Source{Name: filepath.Base(path), Reader: f, Size: -1})
	}
	return CompressTo(ctx, dst, list, o)
}

// CompressTo is CompressFile for sources that are open already.
func CompressTo(ctx context.Context, dst string, srcs []Source, o Options) (Stats, error) {
	out, err := store.Create(dst, o.Overwrite)
	if err != nil {
		return Stats{}, err
	}
	defer out.Abort()
	stats, err := Compress(ctx, out, srcs, o)
	if err != nil {
		return stats, err
	}
	if err := reopen(out); err != nil {
		return stats, err
	}
	return stats, out.Commit()
}

// reopen parses back what was written; a device cannot be read back and is not.
func reopen(out *store.Output) error {
	if !out.Regular() {
		return nil
	}
	f, err := out.File()
	if err != nil {
		return err
	}
	if _, err := newReader(f); err != nil {
		return fmt.Errorf("%s: what was written does not read back: %w", out.Path(), err)
	}
	return nil
}

// openSource opens an input and refuses one that is the output.
func openSource(path, dst string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := notSame(f, dst); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notSame(f *os.File, dst string) error {
	in, err := f.Stat()
	if err != nil {
		return err
	}
	if in.IsDir() {
		return fmt.Errorf("%s: is a directory", f.Name())
	}
	if out, err := os.Stat(dst); err == nil && os.SameFile(in, out) {
		return fmt.Errorf("%s: input and output are the same file", f.Name())
	}
	return nil
}

// DecompressFile writes the only member of the .wcodec file src to dst, as CompressFile writes: whole or not at all.
func DecompressFile(ctx context.Context, dst, src string, o Options) (Stats, error) {
	f, err := openSource(src, dst)
	if err != nil {
		return Stats{}, err
	}
	f.Close()
	r, err := Open(src)
	if err != nil {
		return Stats{}, err
	}
	defer r.Close()
	if n := len(r.Members()); n != 1 {
		return Stats{}, fmt.Errorf("%s: holds %d files; give a directory to extract them into", src, n)
	}
	return r.Members()[0].DecompressTo(ctx, dst, o)
}

// DecompressTo writes the member's original file to the path dst, whole or not at all.
func (m *Member) DecompressTo(ctx context.Context, dst string, o Options) (Stats, error) {
	out, err := store.Create(dst, o.Overwrite)
	if err != nil {
		return Stats{}, err
	}
	defer out.Abort()
	stats, err := m.Decompress(ctx, out, o)
	if err != nil {
		return stats, err
	}
	return stats, out.Commit()
}

// ExtractAll writes every member to the directory dir, which is made if need be, and directories below it for members
// whose names have them. Names were checked when the file was opened: none leads out of dir.
func (r *Reader) ExtractAll(ctx context.Context, dir string, o Options) (Stats, error) {
	begin := time.Now()
	total := int64(0)
	for _, m := range r.members {
		total += m.Size()
		p := filepath.Join(dir, filepath.FromSlash(m.Name()))
		if _, err := os.Lstat(p); !o.Overwrite && !errors.Is(err, fs.ErrNotExist) {
			return Stats{}, fmt.Errorf("%s: %w", p, ErrExists) // before the first is written
		}
	}
	run := newDirRun(total, o)
	defer run.end()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return run.stats.Stats, err
	}
	for _, m := range r.members {
		p := filepath.Join(dir, filepath.FromSlash(m.Name()))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return run.stats.Stats, err
		}
		s, err := m.DecompressTo(ctx, p, run.options())
		run.done(s)
		if err != nil {
			return run.stats.Stats, err
		}
	}
	run.stats.Wall = time.Since(begin)
	return run.stats.Stats, nil
}
