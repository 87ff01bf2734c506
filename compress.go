package wcodec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/wcodec/wcodec/checksum"
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/format"
	"github.com/wcodec/wcodec/safetensors"
	"github.com/wcodec/wcodec/sched"
	"github.com/wcodec/wcodec/store"
	"github.com/wcodec/wcodec/tensor"
)

// Source is one input of Compress: a member of the output.
type Source struct {
	Name   string    // base name that the member gets; a name that ends in .safetensors must be one
	Reader io.Reader // an *os.File that is a regular file is mapped and read from its start
	Size   int64     // bytes, or -1 where unknown; ignored for mapped files
}

// Compress writes the sources as one .wcodec file to dst, front to back. Equal sources and options give equal bytes,
// whatever the number of workers. Memory stays bounded whatever the size of the sources. A source that is a
// safetensors file is coded tensor by tensor; any other is a blob.
func Compress(ctx context.Context, dst io.Writer, srcs []Source, o Options) (Stats, error) {
	begin := time.Now()
	w, err := format.NewWriter(dst)
	if err != nil {
		return Stats{}, err
	}
	if o.Codec != "" && o.Codec != "auto" {
		if _, err := registry.ByName(o.Codec); err != nil {
			return Stats{}, err
		}
	}
	c := &compressor{o: o, w: w, level: codec.Level(o.Level)}
	total := int64(0)
	names := make(map[string]bool)
	for _, s := range srcs {
		if !format.ValidName(s.Name) {
			return Stats{}, fmt.Errorf("%.100q: cannot be a name inside a .wcodec file: want a relative path without backslashes, control characters and broken UTF-8", s.Name)
		}
		if names[s.Name] {
			return Stats{}, fmt.Errorf("%s: two inputs have this name", s.Name)
		}
		names[s.Name] = true
		in, err := newInput(s, &c.in)
		if err != nil {
			return Stats{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		if in.size < 0 || total < 0 {
			total = -1
		} else {
			total += in.size
		}
		c.inputs = append(c.inputs, in)
	}
	c.meter = newMeter(o.Progress, total)
	next, stop := iter.Pull2(c.tasks())
	st, err := sched.Run(ctx, sched.Config{Workers: o.Workers, Guard: store.Guard}, func() (*sched.Task, error) {
		t, err, ok := next()
		if !ok {
			return nil, io.EOF
		}
		return t, err
	})
	stop()
	for _, in := range c.inputs {
		if err == nil {
			err = in.unchanged()
		}
	}
	if err == nil {
		err = c.finish()
	}
	c.meter.stop()
	c.stats.Sched, c.stats.Wall = st, time.Since(begin)
	c.stats.StoredBytes = w.Offset()
	return c.stats, err
}

// compressor carries one Compress. The task generator appends to members and to their tensors; the Finish stages, which
// run in order on one goroutine, fill in what was written.
type compressor struct {
	o       Options
	level   codec.Level
	w       *format.Writer
	inputs  []*input
	members []*memberRecord
	in, out bufferPool
	meter   *meter
	stats   Stats
}

type memberRecord struct {
	m       format.Member
	tensors []*tensorRecord // of a safetensors member, the trailing bytes last where trailing is set; of a blob, its bytes
	trail   bool
	size    uint64
}

type tensorRecord struct {
	t      format.Tensor
	digest *format.DigestState
}

// tasks generates the work of all inputs in order.
func (c *compressor) tasks() iter.Seq2[*sched.Task, error] {
	return func(yield func(*sched.Task, error) bool) {
		for _, in := range c.inputs {
			h, err := in.header(c.o)
			if err != nil {
				yield(nil, err)
				return
			}
			ok := false
			if h == nil {
				ok = c.blob(in, yield)
			} else {
				ok = c.safetensors(in, h, yield)
			}
			if !ok {
				return
			}
		}
	}
}

func (c *compressor) safetensors(in *input, h *safetensors.Header, yield func(*sched.Task, error) bool) bool {
	m := &memberRecord{m: format.Member{Name: in.name, Kind: format.KindSafetensors}}
	c.members = append(c.members, m)
	m.size = h.FileSize()
	ok := yield(&sched.Task{Finish: func() (err error) {
		m.m.Header, err = c.w.MemberHeader(h.Raw)
		c.meter.add(len(h.Raw), int(m.m.Header.StoredLen))
		return err
	}}, nil)
	if !ok {
		return false
	}
	for i := range h.Tensors {
		ht := &h.Tensors[i]
		n := ht.End - ht.Begin
		t := &tensorRecord{digest: format.NewDigest(), t: format.Tensor{
			Name: ht.Name, DType: ht.DType, Shape: ht.Shape, Begin: ht.Begin, Length: n,
			Geometry: tensor.Of(ht.DType, ht.Shape, n),
		}}
		m.tensors = append(m.tensors, t)
		if !c.tensor(in, t, fmt.Sprintf("tensor %q", ht.Name), yield) {
			return false
		}
	}
	switch rest, err := in.peek(1); {
	case err != nil:
		yield(nil, err)
		return false
	case len(rest) == 0:
		return true
	}
	if !c.o.KeepTrailing {
		yield(nil, fmt.Errorf("%s: %w; keep them with --keep-trailing", in.name, join(ErrCorrupt, ErrTrailing)))
		return false
	}
	m.trail = true
	return c.bytes(in, m, h.DataSize(), yield)
}

func (c *compressor) blob(in *input, yield func(*sched.Task, error) bool) bool {
	m := &memberRecord{m: format.Member{Name: in.name, Kind: format.KindBlob}}
	c.members = append(c.members, m)
	return c.bytes(in, m, 0, yield)
}

// bytes takes the rest of the input as one anonymous tensor of bytes, whose length need not be known ahead: the chunks
// of a full segment do not depend on it.
func (c *compressor) bytes(in *input, m *memberRecord, begin uint64, yield func(*sched.Task, error) bool) bool {
	t := &tensorRecord{digest: format.NewDigest(), t: format.Tensor{DType: tensor.U8, Begin: begin, Geometry: tensor.OfBlob(0)}}
	m.tensors = append(m.tensors, t)
	for {
		// Read ahead of the budget, by one segment at most, to know whether there is another.
		b, release, err := in.take(int(t.t.Geometry.SegElems))
		if err == io.EOF {
			break
		}
		if err != nil && err != errShort {
			yield(nil, fmt.Errorf("%s: %w", in.name, err))
			return false
		}
		last := len(b) < int(t.t.Geometry.SegElems)
		g := t.t.Geometry
		g.Cols = uint64(len(b))
		s := &segmentJob{c: c, t: t, what: in.name, g: g, src: b, release: release, class: t.t.Length + uint64(len(b))}
		t.t.Length += uint64(len(b))
		if !yield(s.task(), nil) {
			return false
		}
		if last {
			break
		}
	}
	t.t.Geometry = tensor.OfBlob(t.t.Length)
	m.size += t.t.Length
	return true
}

func (c *compressor) tensor(in *input, t *tensorRecord, what string, yield func(*sched.Task, error) bool) bool {
	g := t.t.Geometry
	for no := range g.Segments() {
		_, elems := g.SegmentRange(no)
		s := &segmentJob{c: c, t: t, what: in.name + ": " + what, g: g, no: no, class: t.t.Length}
		task := s.task()
		n := int(elems) * g.UnitSize
		task.Weight = int64(2 * n)
		task.Load = func() (err error) {
			s.src, s.release, err = in.take(n)
			switch err {
			case nil:
				return nil
			case io.EOF, errShort:
				return fmt.Errorf("%s: the file ends inside the data: %w", s.what, ErrCorrupt)
			}
			return fmt.Errorf("%s: %w", s.what, err)
		}
		if !yield(task, nil) {
			return false
		}
	}
	return true
}

// finish writes the directory.
func (c *compressor) finish() error {
	members := make([]format.Member, len(c.members))
	for i, m := range c.members {
		for k, t := range m.tensors {
			t.t.Digest = t.digest.Sum(t.t.Length, t.t.Geometry)
			switch {
			case m.m.Kind == format.KindBlob:
				m.m.Blob = &t.t
			case m.trail && k == len(m.tensors)-1:
				m.m.Trailing = &t.t
			default:
				m.m.Tensors = append(m.m.Tensors, t.t)
				c.stats.Tensors++
			}
		}
		m.m.Size = m.size
		members[i] = m.m
		c.stats.Members++
		c.stats.PlainBytes += int64(m.size)
	}
	return c.w.Finish(members)
}

// partBytes is about how much of a segment one part encodes or decodes.
const partBytes = 1 << 20

// segmentJob encodes one segment.
type segmentJob struct {
	c       *compressor
	t       *tensorRecord
	what    string
	g       tensor.Geometry
	no      int
	class   uint64 // decides the alignment: the tensor's size, or of a stream what is known of it, which is enough
	src     []byte
	release func()

	codec   codec.Codec
	coder   codec.Coder
	chunks  []tensor.Chunk
	per     int // chunks of a part
	entries []format.IndexEntry
	data    [][]byte // one buffer a part
}

func (s *segmentJob) task() *sched.Task {
	return &sched.Task{
		Weight: int64(2 * len(s.src)),
		Plan: func(w *sched.Worker) (parts int, err error) {
			err = guarded(s.label, func() (err error) { parts, err = s.plan(w); return err })
			return parts, err
		},
		Part: func(w *sched.Worker, i int) error {
			return guarded(s.label, func() error { return s.part(w, i) })
		},
		Finish: s.finish,
		Release: func() {
			if s.release != nil {
				s.release()
			}
			for _, b := range s.data {
				if b != nil {
					s.c.out.put(b)
				}
			}
		},
	}
}

func (s *segmentJob) label() string { return s.what }

func (s *segmentJob) plan(w *sched.Worker) (int, error) {
	sample, exact := codec.Sample(w.Buffer(0, 0), s.src, s.g.UnitSize)
	name := s.c.o.Codec
	if s.g.ChunkElems > tensor.MaxChunkElems && (name == "" || name == codec.Auto) {
		name = "zstd" // of all codes only this one, and raw, take chunks as large as a blob's
	}
	var err error
	s.codec, s.coder, err = codec.Choose(registry, name, s.g.Unit, sample, exact, s.c.level)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.what, err)
	}
	s.chunks = s.g.AppendChunks(nil, s.no)
	s.per = max(1, partBytes/(int(s.g.ChunkElems)*s.g.UnitSize))
	parts := (len(s.chunks) + s.per - 1) / s.per
	s.entries = make([]format.IndexEntry, len(s.chunks))
	s.data = make([][]byte, parts)
	return parts, nil
}

func (s *segmentJob) part(w *sched.Worker, i int) error {
	lo, hi := i*s.per, min((i+1)*s.per, len(s.chunks))
	most := 0
	for _, c := range s.chunks[lo:hi] {
		most += c.Elems()*s.g.UnitSize + format.ChunkAlign
	}
	out := s.c.out.get(most)[:0]
	defer func() { s.data[i] = out }()
	plain := 0
	for k := lo; k < hi; k++ {
		c := s.chunks[k]
		units := c.Gather(w.Buffer(0, c.Elems()*s.g.UnitSize), s.src, s.g.UnitSize)
		at := len(out)
		var err error
		e := &s.entries[k]
		out, err = s.coder.EncodeChunk(out, units, &w.Scratch)
		if errors.Is(err, codec.ErrUnsuitable) || err == nil && len(out)-at >= len(units) {
			out = append(out[:at], units...)
			e.Raw = true
		} else if err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		e.Length = uint32(len(out) - at)
		e.Stored = checksum.Sum64(out[at:])
		e.Decoded = checksum.Sum64(units)
		plain += len(units)
		for len(out)%format.ChunkAlign != 0 {
			out = append(out, 0)
		}
	}
	s.c.meter.add(plain, len(out))
	return nil
}

func (s *segmentJob) finish() error {
	c, t := s.c, s.t
	raws := 0
	for _, e := range s.entries {
		t.digest.Add(e.Decoded)
		if e.Raw {
			raws++
		}
	}
	id, table := s.codec.ID(), s.coder.AppendTable(nil)
	if raws == len(s.entries) {
		id, table = codec.Raw, nil
	}
	seg, err := c.w.Segment(s.class, uint8(id), table, s.entries, s.data)
	if err != nil {
		return err
	}
	t.t.Segments = append(t.t.Segments, seg)
	name := s.codec.Name()
	if id == codec.Raw {
		name = "raw"
	} else {
		c.stats.RawChunks += int64(raws)
	}
	c.stats.Chunks += int64(len(s.entries))
	c.stats.code(name, int64(len(s.src)), int64(seg.StoredLen()))
	return nil
}
