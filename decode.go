package wcodec

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/sched"
	"github.com/wcodec/wcodec/store"
	"github.com/wcodec/wcodec/tensor"
)

// decodeOptions say how a decode runs.
type decodeOptions struct {
	workers int
	full    bool // check stored bytes and padding as well: test
	weight  func(s *segment) int64
	meter   *meter
	keep    func(s *segment, chunk int) bool // nil: every chunk
	skip    func(first, end uint64) bool     // whether a segment of these units has none to keep; nil: none
}

// sink takes what a segment decodes to. Its methods but finish run on workers, several at once; finish runs in the
// order of the segments.
type sink interface {
	// buffer returns memory for the segment's bytes lo to hi, where the sink wants a part of a segment whole, or nil.
	buffer(p *partRun, lo, hi uint64) []byte
	// chunk gets the decoded bytes of chunk i where buffer gave nil.
	chunk(p *partRun, i int, units []byte) error
	// part is called when all chunks of a part are in its buffer.
	part(p *partRun) error
	finish() error
}

// segment is one segment while it is decoded.
type segment struct {
	t      *Tensor
	no     int
	seg    *format.Segment
	g      tensor.Geometry
	meta   []byte // index and table as stored
	index  []format.IndexEntry
	coder  codec.Coder
	chunks []tensor.Chunk
	parts  []part
	sink   sink
	opt    *decodeOptions
}

// part is a run of chunks that covers one run of the segment's units.
type part struct {
	lo, hi      int    // chunks
	first, last uint64 // units
}

// partRun is a part on its worker.
type partRun struct {
	*segment
	part
	w   *sched.Worker
	buf []byte
}

// firstByte is where the segment begins in the plain tensor.
func (s *segment) firstByte() uint64 {
	first, _ := s.g.SegmentRange(s.no)
	return first * uint64(s.g.UnitSize)
}

// byteLen is the size of the plain segment.
func (s *segment) byteLen() int {
	_, elems := s.g.SegmentRange(s.no)
	return int(elems) * s.g.UnitSize
}

// decodeAll decodes the segments of the tensors in order into the sinks that to returns for them.
func decodeAll(ctx context.Context, tensors []*Tensor, o decodeOptions, to func(*segment) sink) (sched.Stats, error) {
	ti, no := 0, 0
	var digest *format.DigestState
	return sched.Run(ctx, sched.Config{Workers: o.workers, Guard: store.Guard}, func() (*sched.Task, error) {
		for ti < len(tensors) && o.skip != nil && no < len(tensors[ti].t.Segments) {
			first, elems := tensors[ti].t.Geometry.SegmentRange(no)
			if !o.skip(first, first+elems) {
				break
			}
			no++
		}
		for ti < len(tensors) && no == len(tensors[ti].t.Segments) {
			if t := tensors[ti]; no == 0 && format.NewDigest().Sum(0, t.t.Geometry) != t.t.Digest {
				return nil, fmt.Errorf("%s: digest of an empty tensor differs: %w", t.label(), ErrCorrupt)
			}
			ti, no = ti+1, 0
		}
		if ti == len(tensors) {
			return nil, io.EOF
		}
		t := tensors[ti]
		s := &segment{t: t, no: no, seg: &t.t.Segments[no], g: t.t.Geometry, opt: &o}
		no++
		s.sink = to(s)
		task := &sched.Task{Load: s.load}
		task.Plan = func(w *sched.Worker) (parts int, err error) {
			err = guarded(t.label, func() (err error) { parts, err = s.plan(w); return err })
			return parts, err
		}
		task.Part = func(w *sched.Worker, i int) error {
			return guarded(t.label, func() error { return s.decodePart(w, i) })
		}
		task.Weight = int64(s.seg.StoredLen())
		if o.weight != nil {
			task.Weight += o.weight(s)
		}
		task.Finish = func() error {
			if s.no == 0 {
				digest = format.NewDigest()
			}
			if o.keep == nil {
				for i := range s.index {
					digest.Add(s.index[i].Decoded)
				}
				if s.no == len(t.t.Segments)-1 && digest.Sum(t.t.Length, s.g) != t.t.Digest {
					return s.errorf(-1, fmt.Errorf("digest differs: %w", ErrCorrupt))
				}
			}
			return s.sink.finish()
		}
		return task, nil
	})
}

// guarded is store.Guard that says what was read when a mapped file shrank.
func guarded(label func() string, f func() error) error {
	err := store.Guard(f)
	if errors.Is(err, store.ErrFault) {
		return fmt.Errorf("%s: %w", label(), err)
	}
	return err
}

// errorf names the segment's tensor, and the chunk where there is one.
func (s *segment) errorf(chunk int, err error) error {
	if chunk >= 0 {
		return fmt.Errorf("%s segment %d chunk %d: %w", s.t.label(), s.no, chunk, err)
	}
	return fmt.Errorf("%s segment %d: %w", s.t.label(), s.no, err)
}

func (s *segment) load() error {
	s.meta = make([]byte, s.seg.MetaLen())
	if err := s.read(s.meta, 0); err != nil {
		return s.errorf(-1, err)
	}
	if w, ok := s.t.m.r.file.(interface{ WillNeed(off, n int64) }); ok && s.opt.keep == nil {
		w.WillNeed(int64(s.seg.Offset), int64(s.seg.StoredLen()))
	}
	if st, ok := s.sink.(interface{ start() }); ok {
		st.start()
	}
	return nil
}

// read fills b from byte at of the stored segment.
func (s *segment) read(b []byte, at uint64) error {
	n, err := s.t.m.r.file.ReadAt(b, int64(s.seg.Offset+at))
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends inside the segment: %w", ErrCorrupt)
	}
	return err
}

// open reads the segment's index and table.
func (s *segment) open() error {
	s.chunks = s.g.AppendChunks(nil, s.no)
	index, table, err := s.seg.ParseMeta(nil, s.meta, s.chunks, s.g.UnitSize)
	if err != nil {
		return s.errorf(-1, classify(err))
	}
	c, err := registry.ByID(codec.ID(s.seg.Code))
	if err != nil {
		return s.errorf(-1, join(ErrUnsupported, err))
	}
	if err := s.checkUnit(); err != nil {
		return s.errorf(-1, err)
	}
	s.coder, err = c.Parse(s.g.Unit, table)
	if err != nil {
		return s.errorf(-1, join(ErrCorrupt, err))
	}
	s.index = index
	return nil
}

// checkUnit refuses units whose size is not that of their type where the code looks into them. A type that is not known
// may be by a later version, which will know its planes.
func (s *segment) checkUnit() error {
	d := s.g.Unit
	switch {
	case codec.ID(s.seg.Code) != codec.Rans || d.Bits() == 8*s.g.UnitSize || !d.Known() && s.g.UnitSize == 1:
		return nil
	case !d.Known():
		return fmt.Errorf("units of the unknown type %s with %d bytes: %w", d, s.g.UnitSize, ErrUnsupported)
	}
	return fmt.Errorf("units of type %s with %d bytes: %w", d, s.g.UnitSize, ErrCorrupt)
}

func (s *segment) plan(*sched.Worker) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	s.parts = s.cut()
	return len(s.parts), nil
}

// cut divides the chunks into parts of about partBytes: whole bands of a tiled segment, runs of a linear one.
func (s *segment) cut() []part {
	var parts []part
	units := uint64(max(1, partBytes/s.g.UnitSize))
	p := part{}
	for i := range s.chunks {
		c := &s.chunks[i]
		p.last = max(p.last, c.First+uint64(c.H-1)*c.Stride+uint64(c.W))
		// A tiled part may end where a band does: there every unit before is covered.
		end := i+1 == len(s.chunks) || s.g.TileRows == 0 || s.chunks[i+1].First%(s.g.Cols*uint64(s.g.TileRows)) == 0
		if i+1 == len(s.chunks) || end && p.last-p.first >= units {
			p.hi = i + 1
			parts = append(parts, p)
			p = part{lo: i + 1, first: p.last, last: p.last}
		}
	}
	return parts
}

// batch is how many chunks a coder gets at once: enough to work on several, few enough to stay in the cache.
const batch = 2

func (s *segment) decodePart(w *sched.Worker, i int) error {
	p := &partRun{segment: s, part: s.parts[i], w: w}
	size := uint64(s.g.UnitSize)
	p.buf = s.sink.buffer(p, p.first*size, p.last*size)
	for lo := p.lo; lo < p.hi; lo += batch {
		if err := p.decodeBatch(lo, min(lo+batch, p.hi)); err != nil {
			return err
		}
	}
	return s.sink.part(p)
}

// decodeBatch decodes chunks lo to hi, checks them, and puts them where they belong.
func (p *partRun) decodeBatch(lo, hi int) error {
	s := p.segment
	var jobs [batch]codec.Job
	var which [batch]int
	n, at := 0, 0
	chunkBytes := int(s.g.ChunkElems) * s.g.UnitSize
	scratch := p.w.Buffer(0, batch*chunkBytes)
	if s.opt.keep != nil && !s.keepsAny(lo, hi) {
		return nil
	}
	// Reading into a buffer that stays in the cache costs less than mapping the pages of a file.
	from, to := s.index[lo].Offset, s.seg.DataLen
	if hi < len(s.index) {
		to = s.index[hi].Offset
	}
	data := p.w.Buffer(2, int(to-from))
	if err := s.read(data, uint64(s.seg.MetaLen())+from); err != nil {
		return s.errorf(lo, err)
	}
	plain, stored := 0, 0
	for i := lo; i < hi; i++ {
		if s.opt.keep != nil && !s.opt.keep(s, i) {
			continue
		}
		c, e := &s.chunks[i], &s.index[i]
		src := data[e.Offset-from : e.Offset-from+uint64(e.Length)]
		if s.opt.full {
			if err := s.checkStored(i, src, data, from); err != nil {
				return err
			}
		}
		plain += c.Elems() * s.g.UnitSize
		stored += int(e.Length)
		dst := scratch[at : at+c.Elems()*s.g.UnitSize]
		if p.buf != nil && c.Contiguous() {
			first := (c.First - p.first) * uint64(s.g.UnitSize)
			dst = p.buf[first : first+uint64(len(dst))]
		} else {
			at += chunkBytes
		}
		if e.Raw {
			copy(dst, src)
			if err := p.deliver(i, dst); err != nil {
				return err
			}
			continue
		}
		jobs[n] = codec.Job{Dst: dst, Src: src}
		which[n] = i
		n++
	}
	if n > 0 {
		s.coder.DecodeChunks(jobs[:n], &p.w.Scratch)
	}
	for k := range jobs[:n] {
		if err := jobs[k].Err; err != nil {
			return s.errorf(which[k], join(ErrCorrupt, err))
		}
		if err := p.deliver(which[k], jobs[k].Dst); err != nil {
			return err
		}
	}
	if s.opt.meter != nil {
		s.opt.meter.add(plain, stored)
	}
	return nil
}

// keepsAny reports whether a chunk of lo to hi is asked for.
func (s *segment) keepsAny(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if s.opt.keep(s, i) {
			return true
		}
	}
	return false
}

// deliver checks the decoded chunk i and hands it on.
func (p *partRun) deliver(i int, units []byte) error {
	s := p.segment
	if checksum.Sum64(units) != s.index[i].Decoded {
		return s.errorf(i, fmt.Errorf("checksum of the decoded bytes differs: %w", ErrCorrupt))
	}
	if p.buf == nil {
		return s.sink.chunk(p, i, units)
	}
	if c := s.chunks[i]; !c.Contiguous() {
		c.First -= p.first
		c.Scatter(p.buf, units, s.g.UnitSize)
	}
	return nil
}

// checkStored checks, in the data from byte from of the segment's on, what a decoder need not look at: the stored bytes' own checksum, and the padding after them.
func (s *segment) checkStored(i int, src, data []byte, from uint64) error {
	if checksum.Sum64(src) != s.index[i].Stored {
		return s.errorf(i, fmt.Errorf("checksum of the stored bytes differs: %w", ErrCorrupt))
	}
	end := s.index[i].Offset + uint64(len(src))
	next := from + uint64(len(data))
	if i+1 < len(s.index) {
		next = s.index[i+1].Offset
	}
	if err := format.CheckZero(data[end-from : next-from]); err != nil {
		return s.errorf(i, classify(err))
	}
	return nil
}
