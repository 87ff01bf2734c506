package wcodec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wcodec/wcodec/store"
)

// DirStats says what an operation on a checkpoint directory did. Copied files count as plain and as stored bytes.
type DirStats struct {
	Stats
	Packed  int `json:"packed"`  // files that are packed, those of an earlier run included
	Copied  int `json:"copied"`  // files that travel as they are
	Resumed int `json:"resumed"` // files that an earlier run had finished
}

// CompressDir packs the checkpoint directory src into the directory dst, file by file (see ScanDir and IndexName), the
// index last. Every file appears whole or not at all. Where dst has no index, an earlier run did not finish: packed
// files that are not older than their originals and hold the same bytes, to which they are decoded and compared, are kept,
// so a run resumes where the one before it stopped; one that holds anything else is an error that wraps ErrExists. A
// dst with an index is such an error too; with Options.Overwrite its index is removed first and everything is packed anew.
func CompressDir(ctx context.Context, dst, src string, o Options) (DirStats, error) {
	begin := time.Now()
	files, err := ScanDir(src, o)
	if err != nil {
		return DirStats{}, err
	}
	if err := apart(dst, src); err != nil {
		return DirStats{}, err
	}
	p := &dirPacker{dirRun: newDirRun(totalSize(files), o), dst: dst, src: src}
	p.index.WeightMap = make(map[string]string)
	defer p.end()
	if err := p.claim(); err != nil {
		return p.stats, err
	}
	for i := range files {
		if err := p.file(ctx, &files[i]); err != nil {
			return p.stats, err
		}
	}
	p.index.Files = files
	p.index.Metadata.Format, p.index.Metadata.Version, p.index.Metadata.TotalSize = "wcodec", dirIndexVersion, totalSize(files)
	b, err := p.index.encode()
	if err != nil {
		return p.stats, err
	}
	err = writeFile(filepath.Join(dst, IndexName), bytes.NewReader(b), "", o.Overwrite)
	p.stats.StoredBytes += int64(len(b))
	p.stats.Wall = time.Since(begin)
	return p.stats, err
}

// apart refuses directories of which one is, or is in, the other.
func apart(dst, src string) error {
	s, err := filepath.EvalSymlinks(src)
	if err == nil {
		s, err = filepath.Abs(s)
	}
	if err != nil {
		return err
	}
	d, err := filepath.Abs(dst)
	if err != nil {
		return err
	}
	// Of a path that does not exist yet, the part that does says where it will be.
	rest := ""
	for at := d; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			d = filepath.Join(real, rest)
			break
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	for _, pair := range [][2]string{{d, s}, {s, d}} {
		rel, err := filepath.Rel(pair[0], pair[1])
		if err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("%s and %s: input and output directory must lie apart", src, dst)
		}
	}
	return nil
}

// dirRun is what the operations on many files share: the sums, and one progress over all of them.
type dirRun struct {
	o     Options
	stats DirStats
	base  Progress
	total int64
}

func newDirRun(total int64, o Options) dirRun { return dirRun{o: o, total: total} }

// options are those for one file.
func (r *dirRun) options() Options {
	o := r.o
	if report := r.o.Progress; report != nil {
		o.Progress = func(p Progress) {
			report(Progress{Done: r.base.Done + p.Done, Total: r.total, Stored: r.base.Stored + p.Stored})
		}
	}
	return o
}

// done counts a file that is through.
func (r *dirRun) done(s Stats) {
	r.stats.merge(s)
	w := &r.stats.Sched
	w.Workers = max(w.Workers, s.Sched.Workers)
	w.Tasks += s.Sched.Tasks
	w.Parts += s.Sched.Parts
	w.Load += s.Sched.Load
	w.Plan += s.Sched.Plan
	w.Compute += s.Sched.Compute
	w.Finish += s.Sched.Finish
	w.QueueWait += s.Sched.QueueWait
	r.base.Done += s.PlainBytes
	r.base.Stored += s.StoredBytes
}

// end makes the last report.
func (r *dirRun) end() {
	if r.o.Progress != nil {
		r.o.Progress(Progress{Done: r.base.Done, Total: r.total, Stored: r.base.Stored})
	}
}

type dirPacker struct {
	dirRun
	dst, src string
	index    dirIndex
}

// claim makes dst ready to be filled.
func (p *dirPacker) claim() error {
	if err := os.MkdirAll(p.dst, 0o777); err != nil {
		return err
	}
	index := filepath.Join(p.dst, IndexName)
	_, err := os.Lstat(index)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !p.o.Overwrite:
		return fmt.Errorf("%s: %w", index, ErrExists)
	}
	return os.Remove(index)
}

// file packs, copies or makes one file.
func (p *dirPacker) file(ctx context.Context, f *DirFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	src := filepath.Join(p.src, filepath.FromSlash(f.Name))
	dst := filepath.Join(p.dst, filepath.FromSlash(f.Name))
	if f.How == HowDir {
		return os.MkdirAll(dst, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil {
		return err
	}
	if f.How == HowCopied {
		return p.copy(dst, src, f)
	}
	return p.pack(ctx, dst+packedExt, src, f)
}

func (p *dirPacker) copy(dst, src string, f *DirFile) error {
	p.stats.Copied++
	sum, n, err := fileSum(src)
	if err != nil {
		return err
	}
	f.SHA256, f.Size = sum, n
	defer func() { p.done(Stats{PlainBytes: n, StoredBytes: n}) }()
	if !p.o.Overwrite {
		if have, _, err := fileSum(dst); err == nil && have == sum {
			return nil
		}
	}
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	return writeFile(dst, in, sum, p.o.Overwrite)
}

func (p *dirPacker) pack(ctx context.Context, dst, src string, f *DirFile) error {
	p.stats.Packed++
	if !p.o.Overwrite && resumable(dst, src, p.o) {
		r, err := Open(dst)
		if err != nil {
			return err
		}
		defer r.Close()
		// Neither time nor size nor header tells one step of a training from the next.
		s, err := p.same(ctx, r.Members()[0], src)
		if errors.Is(err, ErrMismatch) || errors.Is(err, ErrCorrupt) {
			return fmt.Errorf("%s: %w, and does not hold what %s does: %v", dst, ErrExists, src, err)
		}
		if err != nil {
			return err
		}
		p.stats.Resumed++
		s.StoredBytes = r.Size()
		p.done(s)
		return p.enter(r, f)
	}
	s, err := CompressFile(ctx, dst, []string{src}, p.options())
	if err != nil {
		return err
	}
	p.done(s)
	r, err := Open(dst)
	if err != nil {
		return err
	}
	defer r.Close()
	return p.enter(r, f)
}

// same compares what an earlier run packed with the file at src.
func (p *dirPacker) same(ctx context.Context, m *Member, src string) (Stats, error) {
	orig, err := os.Open(src)
	if err != nil {
		return Stats{}, err
	}
	defer orig.Close()
	st, err := orig.Stat()
	if err != nil {
		return Stats{}, err
	}
	return m.Verify(ctx, orig, st.Size(), p.options())
}

// enter puts a packed file into the index.
func (p *dirPacker) enter(r *Reader, f *DirFile) error {
	f.Size, f.StoredSize = r.Members()[0].Size(), r.Size()
	for _, t := range r.Tensors() {
		// Some repositories hold the same weights twice, whole and in shards. The first file by name has them.
		if _, there := p.index.WeightMap[t.Name()]; !there {
			p.index.WeightMap[t.Name()] = f.Stored
		}
	}
	return nil
}

// resumable reports whether dst may be the packed form of src that an earlier run left, as far as a look at it tells.
func resumable(dst, src string, o Options) bool {
	ds, err := os.Lstat(dst)
	if err != nil || !ds.Mode().IsRegular() {
		return false
	}
	ss, err := os.Stat(src)
	if err != nil || ss.ModTime().After(ds.ModTime()) {
		return false
	}
	r, err := Open(dst)
	if err != nil {
		return false
	}
	defer r.Close()
	if len(r.Members()) != 1 {
		return false
	}
	m := r.Members()[0]
	if m.Name() != filepath.Base(src) || m.Size() != ss.Size() {
		return false
	}
	if m.Kind() != KindSafetensors {
		return o.Blob || !strings.EqualFold(filepath.Ext(src), ".safetensors")
	}
	head, err := m.Header()
	if err != nil {
		return false
	}
	f, err := os.Open(src)
	if err != nil {
		return false
	}
	defer f.Close()
	have := make([]byte, len(head))
	if _, err := io.ReadFull(f, have); err != nil {
		return false
	}
	return bytes.Equal(have, head)
}

// fileSum returns the SHA-256 and the size of a file.
func fileSum(p string) (string, int64, error) {
	f, err := os.Open(p)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// writeFile writes all of r, whose SHA-256 must be sum where that is given, to the path p, whole or not at all.
func writeFile(p string, r io.Reader, sum string, overwrite bool) error {
	out, err := store.Create(p, overwrite)
	if err != nil {
		return err
	}
	defer out.Abort()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, h), r); err != nil {
		return err
	}
	if sum != "" && sum != hex.EncodeToString(h.Sum(nil)) {
		return fmt.Errorf("%s: the original changed while it was copied", p)
	}
	return out.Commit()
}
