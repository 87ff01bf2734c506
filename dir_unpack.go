package wcodec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// DecompressDir writes the original files of the packed checkpoint directory src to the directory dst, byte for byte.
// Every file appears whole or not at all. Without Options.Overwrite a file that is there already is an error that wraps
// ErrExists, before anything is written.
func DecompressDir(ctx context.Context, dst, src string, o Options) (DirStats, error) {
	begin := time.Now()
	d, err := OpenDir(src)
	if err != nil {
		return DirStats{}, err
	}
	if err := apart(dst, src); err != nil {
		return DirStats{}, err
	}
	if !o.Overwrite {
		for _, f := range d.Files() {
			p := filepath.Join(dst, filepath.FromSlash(f.Name))
			if _, err := os.Lstat(p); f.How != HowDir && !errors.Is(err, fs.ErrNotExist) {
				return DirStats{}, fmt.Errorf("%s: %w", p, ErrExists)
			}
		}
	}
	return d.each(ctx, begin, o, func(f *DirFile, at string, o Options) (Stats, error) {
		to := filepath.Join(dst, filepath.FromSlash(f.Name))
		if f.How == HowDir {
			return Stats{}, os.MkdirAll(to, 0o777)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return Stats{}, err
		}
		if f.How == HowCopied {
			return f.copyBack(to, at, o)
		}
		return f.withMember(at, func(m *Member) (Stats, error) { return m.DecompressTo(ctx, to, o) })
	})
}

// Test checks every file of the directory as Reader.Test does a packed one, and copied files by their hash. It
// writes nothing.
func (d *Dir) Test(ctx context.Context, o Options) (DirStats, error) {
	return d.each(ctx, time.Now(), o, func(f *DirFile, at string, o Options) (Stats, error) {
		switch f.How {
		case HowDir:
			return Stats{}, nil
		case HowCopied:
			return f.checkCopy(at)
		}
		return f.withMember(at, func(m *Member) (Stats, error) { return m.r.Test(ctx, o) })
	})
}

// Verify compares every file of the directory with the one of its name below the directory original, which must have
// no other. Where they differ, the error wraps ErrMismatch.
func (d *Dir) Verify(ctx context.Context, original string, o Options) (DirStats, error) {
	o.FollowLinks = true
	files, err := ScanDir(original, o)
	if err != nil {
		return DirStats{}, err
	}
	if err := sameNames(d.path, d.Files(), original, files); err != nil {
		return DirStats{}, err
	}
	return d.each(ctx, time.Now(), o, func(f *DirFile, at string, o Options) (Stats, error) {
		p := filepath.Join(original, filepath.FromSlash(f.Name))
		switch f.How {
		case HowDir:
			return Stats{}, nil
		case HowCopied:
			s, err := f.checkCopy(at)
			if err != nil {
				return s, err
			}
			sum, _, err := fileSum(p)
			if err == nil && sum != f.SHA256 {
				err = fmt.Errorf("%s: %s: %w", at, p, ErrMismatch)
			}
			return s, err
		}
		orig, err := os.Open(p)
		if err != nil {
			return Stats{}, err
		}
		defer orig.Close()
		st, err := orig.Stat()
		if err != nil {
			return Stats{}, err
		}
		return f.withMember(at, func(m *Member) (Stats, error) { return m.Verify(ctx, orig, st.Size(), o) })
	})
}

// sameNames compares the names in two lists sorted by them.
func sameNames(packed string, a []DirFile, original string, b []DirFile) error {
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(b) || i < len(a) && a[i].Name < b[i].Name:
			return fmt.Errorf("%s: has %s, and %s has not: %w", packed, a[i].Name, original, ErrMismatch)
		case i == len(a) || a[i].Name > b[i].Name:
			return fmt.Errorf("%s: lacks %s, which %s has: %w", packed, b[i].Name, original, ErrMismatch)
		}
	}
	return nil
}

// each runs do for every file, with the path of what stands for it.
func (d *Dir) each(ctx context.Context, begin time.Time, o Options, do func(f *DirFile, at string, o Options) (Stats, error)) (DirStats, error) {
	r := newDirRun(d.Size(), o)
	defer r.end()
	for i := range d.index.Files {
		if err := ctx.Err(); err != nil {
			return r.stats, err
		}
		f := &d.index.Files[i]
		at := ""
		if f.How != HowDir {
			var err error
			if at, err = d.locate(f); err != nil {
				return r.stats, err
			}
		}
		s, err := do(f, at, r.options())
		if err != nil {
			return r.stats, err
		}
		switch f.How {
		case HowPacked:
			r.stats.Packed++
		case HowCopied:
			r.stats.Copied++
		}
		r.done(s)
	}
	r.stats.Wall = time.Since(begin)
	return r.stats, nil
}

// withMember opens the packed file at the path at, which must hold f and nothing else, and calls do with its member.
func (f *DirFile) withMember(at string, do func(*Member) (Stats, error)) (Stats, error) {
	r, err := Open(at)
	if err != nil {
		return Stats{}, err
	}
	defer r.Close()
	if n := len(r.Members()); n != 1 {
		return Stats{}, fmt.Errorf("%s: holds %d files where the index says one: %w", at, n, ErrCorrupt)
	}
	m := r.Members()[0]
	if m.Name() != path.Base(f.Name) { // shards of one size that changed places
		return Stats{}, fmt.Errorf("%s: holds the file %q where the index says %q: %w", at, m.Name(), path.Base(f.Name), ErrCorrupt)
	}
	if m.Size() != f.Size {
		return Stats{}, fmt.Errorf("%s: holds a file of %d bytes where the index says %d: %w", at, m.Size(), f.Size, ErrCorrupt)
	}
	s, err := do(m)
	s.StoredBytes = r.Size()
	return s, err
}

// checkCopy holds a copied file to the hash in the index.
func (f *DirFile) checkCopy(at string) (Stats, error) {
	sum, n, err := fileSum(at)
	if err != nil {
		return Stats{}, err
	}
	if sum != f.SHA256 || n != f.Size {
		return Stats{}, fmt.Errorf("%s: differs from the size or hash in the index: %w", at, ErrCorrupt)
	}
	return Stats{PlainBytes: n, StoredBytes: n}, nil
}

// copyBack writes a copied file to its place, after checking it.
func (f *DirFile) copyBack(to, at string, o Options) (Stats, error) {
	s, err := f.checkCopy(at)
	if err != nil {
		return s, err
	}
	in, err := os.Open(at)
	if err != nil {
		return s, err
	}
	defer in.Close()
	return s, writeFile(to, in, f.SHA256, o.Overwrite)
}
