package wcodec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/store"
)

// Decompress writes the member's original file to w, front to back, checking every chunk's checksum and every
// tensor's digest. A w that can write at offsets, as the output of DecompressFile can, is written by several goroutines at once.
func (m *Member) Decompress(ctx context.Context, w io.Writer, o Options) (Stats, error) {
	begin := time.Now()
	stats := m.stats()
	mt := newMeter(o.Progress, m.Size())
	defer mt.stop()
	head := []byte(nil)
	if m.m.Kind == format.KindSafetensors {
		var err error
		if head, err = m.Header(); err != nil {
			return stats, err
		}
	}
	d := decodeOptions{workers: o.Workers, meter: mt}
	var to func(*segment) sink
	if at, ok := w.(*store.Output); ok && at.Regular() {
		if _, err := at.WriteAt(head, 0); err != nil {
			return stats, err
		}
		d.workers = m.workers(d.workers)
		to = func(s *segment) sink { return &fileSink{s: s, w: at, off: int64(len(head)) + int64(s.t.t.Begin)} }
	} else {
		if _, err := w.Write(head); err != nil {
			return stats, err
		}
		pool := new(bufferPool)
		d.weight = func(s *segment) int64 { return int64(s.byteLen()) }
		to = func(s *segment) sink { return &streamSink{s: s, w: w, pool: pool} }
	}
	mt.add(len(head), int(m.m.Header.StoredLen))
	var err error
	stats.Sched, err = decodeAll(ctx, m.all(), d, to)
	stats.Wall = time.Since(begin)
	return stats, err
}

// stats are the figures of a member that its directory knows.
func (m *Member) stats() Stats {
	s := Stats{Members: 1, Tensors: len(m.tensors), PlainBytes: m.Size(), StoredBytes: m.StoredSize()}
	for _, t := range m.all() {
		for i := range t.t.Segments {
			seg := &t.t.Segments[i]
			_, elems := t.t.Geometry.SegmentRange(i)
			s.Chunks += int64(seg.Chunks)
			s.code(codeName(seg.Code), int64(elems)*int64(t.t.Geometry.UnitSize), int64(seg.StoredLen()))
		}
	}
	return s
}

// partMemory bounds the buffers of all workers that put parts together.
const partMemory = 160 << 20

// workers is how many of n workers may each hold the largest part of the member: a band of a wide matrix has megabytes,
// which many cores would multiply.
func (m *Member) workers(n int) int {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	largest := uint64(1)
	for _, t := range m.all() {
		g := t.t.Geometry
		largest = max(largest, min(t.t.Length, max(partBytes, uint64(g.TileRows)*g.Cols*uint64(g.UnitSize))))
	}
	return min(n, max(1, int(partMemory/largest)))
}

// fileSink writes each part at its place in a file.
type fileSink struct {
	s   *segment
	w   io.WriterAt
	off int64 // of the tensor in the file
}

func (f *fileSink) buffer(p *partRun, lo, hi uint64) []byte { return p.w.Buffer(1, int(hi-lo)) }
func (f *fileSink) chunk(*partRun, int, []byte) error       { return nil }
func (f *fileSink) finish() error                           { return nil }
func (f *fileSink) part(p *partRun) error {
	at := f.s.firstByte() + p.first*uint64(f.s.g.UnitSize)
	_, err := f.w.WriteAt(p.buf, f.off+int64(at))
	return err
}

// streamSink collects a segment and writes it when its turn comes.
type streamSink struct {
	s    *segment
	w    io.Writer
	pool *bufferPool
	buf  []byte
}

func (f *streamSink) start() { f.buf = f.pool.get(f.s.byteLen()) }
func (f *streamSink) buffer(_ *partRun, lo, hi uint64) []byte {
	return f.buf[lo:hi]
}
func (f *streamSink) chunk(*partRun, int, []byte) error { return nil }
func (f *streamSink) part(*partRun) error               { return nil }
func (f *streamSink) finish() error {
	_, err := f.w.Write(f.buf)
	f.pool.put(f.buf)
	f.buf = nil
	return err
}

// Test decodes everything and checks every checksum, over stored and over decoded bytes, every digest and all padding:
// a single flipped bit anywhere in the file is an error. It writes nothing.
func (r *Reader) Test(ctx context.Context, o Options) (Stats, error) {
	begin := time.Now()
	var stats Stats
	var all []*Tensor
	for _, m := range r.members {
		stats.merge(m.stats())
		all = append(all, m.all()...)
	}
	stats.StoredBytes = r.Size()
	mt := newMeter(o.Progress, stats.PlainBytes)
	defer mt.stop()
	for _, m := range r.members {
		if m.m.Kind != format.KindSafetensors {
			continue
		}
		head, err := m.Header()
		if err != nil {
			return stats, err
		}
		if err := m.checkHeader(head); err != nil {
			return stats, err
		}
		mt.add(len(head), int(m.m.Header.StoredLen))
	}
	if err := r.checkGaps(ctx); err != nil {
		return stats, err
	}
	var err error
	stats.Sched, err = decodeAll(ctx, all, decodeOptions{workers: o.Workers, full: true, meter: mt}, func(*segment) sink { return nullSink{} })
	stats.Wall = time.Since(begin)
	return stats, err
}

// checkHeader holds the tensors of the directory against those of the original header.
func (m *Member) checkHeader(raw []byte) error {
	label := fmt.Sprintf("%s: member %q", m.r.file.Name(), m.m.Name)
	h, err := safetensors.Parse(raw, -1)
	if err != nil {
		return fmt.Errorf("%s: %w", label, classify(err))
	}
	if len(h.Tensors) != len(m.tensors) {
		return fmt.Errorf("%s: header has %d tensors, directory %d: %w", label, len(h.Tensors), len(m.tensors), ErrCorrupt)
	}
	for i := range h.Tensors {
		a, b := &h.Tensors[i], m.tensors[i].t
		if a.Name != b.Name || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || a.Begin != b.Begin || a.Size() != b.Length {
			return fmt.Errorf("%s: tensor %q of the directory is not the header's %q: %w", label, b.Name, a.Name, ErrCorrupt)
		}
	}
	return nil
}

func (s *Stats) merge(t Stats) {
	s.Members += t.Members
	s.Tensors += t.Tensors
	s.PlainBytes += t.PlainBytes
	s.StoredBytes += t.StoredBytes
	s.Chunks += t.Chunks
	s.RawChunks += t.RawChunks
	for name, c := range t.Codes {
		if s.Codes == nil {
			s.Codes = make(map[string]CodeStats)
		}
		have := s.Codes[name]
		have.Segments += c.Segments
		have.PlainBytes += c.PlainBytes
		have.StoredBytes += c.StoredBytes
		s.Codes[name] = have
	}
}

// checkGaps reads the padding between sections, which is less than a page each.
func (r *Reader) checkGaps(ctx context.Context) error {
	var buf []byte
	for gap := range r.dir.Gaps() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if uint64(cap(buf)) < gap.Length {
			buf = make([]byte, gap.Length)
		}
		b := buf[:gap.Length]
		if _, err := r.file.ReadAt(b, int64(gap.Offset)); err != nil {
			return fmt.Errorf("%s: padding at %d: %w", r.file.Name(), gap.Offset, err)
		}
		if err := format.CheckZero(b); err != nil {
			return fmt.Errorf("%s: padding at %d: %w", r.file.Name(), gap.Offset, classify(err))
		}
	}
	return nil
}

// nullSink takes decoded chunks and does nothing with them.
type nullSink struct{}

func (nullSink) buffer(*partRun, uint64, uint64) []byte { return nil }
func (nullSink) chunk(*partRun, int, []byte) error      { return nil }
func (nullSink) part(*partRun) error                    { return nil }
func (nullSink) finish() error                          { return nil }

// Verify compares the member's decoded bytes with an original of the given size. Where they differ, the error wraps
// ErrMismatch and names the tensor and the first offset found to differ.
func (m *Member) Verify(ctx context.Context, original io.ReaderAt, size int64, o Options) (Stats, error) {
	begin := time.Now()
	stats := m.stats()
	if size != m.Size() {
		return stats, fmt.Errorf("%s: member %q holds %d bytes, the original has %d: %w", m.r.file.Name(), m.m.Name, m.Size(), size, ErrMismatch)
	}
	orig, ok := original.(store.File)
	if !ok {
		orig = store.FromReaderAt("original", original, size)
	}
	mt := newMeter(o.Progress, m.Size())
	defer mt.stop()
	head := []byte(nil)
	if m.m.Kind == format.KindSafetensors {
		var err error
		if head, err = m.Header(); err != nil {
			return stats, err
		}
		b := make([]byte, len(head))
		if _, err := orig.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			return stats, err
		}
		if i := firstDifference(b, head); i >= 0 {
			return stats, fmt.Errorf("%s: member %q: header at byte %d: %w", m.r.file.Name(), m.m.Name, i, ErrMismatch)
		}
	}
	d := decodeOptions{workers: m.workers(o.Workers), meter: mt}
	var err error
	stats.Sched, err = decodeAll(ctx, m.all(), d, func(s *segment) sink {
		return &verifySink{fileSink{s: s, off: int64(len(head)) + int64(s.t.t.Begin)}, orig}
	})
	stats.Wall = time.Since(begin)
	return stats, err
}

// verifySink compares each part with its place in the original.
type verifySink struct {
	fileSink
	orig store.File
}

func (f *verifySink) part(p *partRun) error {
	at := int64(f.s.firstByte()) + int64(p.first)*int64(f.s.g.UnitSize)
	v, err := f.orig.Map(f.off+at, int64(len(p.buf)))
	if err != nil {
		return err
	}
	defer v.Close()
	if i := firstDifference(v.Bytes(), p.buf); i >= 0 {
		return fmt.Errorf("%s: byte %d of the tensor, %d of the file: %w", f.s.t.label(), at+int64(i), f.off+at+int64(i), ErrMismatch)
	}
	return nil
}

// firstDifference is the first index at which a and b, of equal length, differ, or -1.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
