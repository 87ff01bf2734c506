package wcodec

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/wcodec/wcodec/codec"
)

// Range selects the indices Start to Stop-1 of one dimension. Stop is at most the dimension.
type Range struct{ Start, Stop uint64 }

// Slice is a rectangular part of a tensor, row-major. Reading it decodes only the chunks that it touches.
type Slice struct {
	t      *Tensor
	shape  []uint64
	ranges []Range // one a dimension
	width  int     // bytes of an element
	cols   uint64  // last dimension
}

// Slice selects a part of the tensor: one range for each of its leading dimensions, all of the others. Elements that
// are not whole bytes, or of unknown size, cannot be sliced.
func (t *Tensor) Slice(ranges ...Range) (*Slice, error) {
	shape := t.Shape()
	d := t.t.DType
	if !d.Known() || d.Bits()%8 != 0 {
		return nil, fmt.Errorf("%s: elements of type %s cannot be sliced", t.label(), d)
	}
	if len(ranges) > len(shape) {
		return nil, fmt.Errorf("%s: %d ranges for %d dimensions", t.label(), len(ranges), len(shape))
	}
	s := &Slice{t: t, width: d.Bits() / 8, cols: 1}
	for i, n := range shape {
		r := Range{0, n}
		if i < len(ranges) {
			r = ranges[i]
		}
		if r.Start > r.Stop || r.Stop > n {
			return nil, fmt.Errorf("%s: range %d:%d of dimension %d, which has %d", t.label(), r.Start, r.Stop, i, n)
		}
		s.ranges = append(s.ranges, r)
		s.shape = append(s.shape, r.Stop-r.Start)
		s.cols = n
	}
	return s, nil
}

// Shape is the shape of the slice.
func (s *Slice) Shape() []uint64 { return s.shape }

// Size is the size of the slice in bytes.
func (s *Slice) Size() int64 {
	n := uint64(s.width)
	for _, d := range s.shape {
		n *= d // no overflow: at most the tensor's size
	}
	return int64(n)
}

// ReadInto decodes the slice into dst, whose length is Size.
func (s *Slice) ReadInto(ctx context.Context, dst []byte) error {
	_, err := s.readInto(ctx, dst)
	return err
}

// readInto also returns how many chunks were decoded.
func (s *Slice) readInto(ctx context.Context, dst []byte) (chunks int, err error) {
	if int64(len(dst)) != s.Size() {
		return 0, fmt.Errorf("%s: destination of a slice has %d bytes, want %d", s.t.label(), len(dst), s.Size())
	}
	if len(dst) == 0 {
		return 0, nil
	}
	lo, hi := s.bounds()
	size := uint64(s.t.t.Geometry.UnitSize)
	o := decodeOptions{keep: s.touches, skip: func(first, end uint64) bool { return end*size <= lo || first*size >= hi }}
	sinks := &sliceSinks{s: s, dst: dst}
	_, err = decodeAll(ctx, []*Tensor{s.t}, o, func(seg *segment) sink { return &sliceSink{sinks, seg} })
	return sinks.chunks, err
}

// Read returns the decoded slice.
func (s *Slice) Read(ctx context.Context) ([]byte, error) {
	if uint64(s.Size()) > uint64(1)<<(bits.UintSize-1)-1-codec.Slack {
		return nil, fmt.Errorf("%s: slice of %d bytes does not fit memory", s.t.label(), s.Size())
	}
	dst := make([]byte, s.Size())
	if err := s.ReadInto(ctx, dst); err != nil {
		return nil, err
	}
	return dst, nil
}

// row maps a row of the tensor, its leading dimensions taken together, to the row of the slice.
func (s *Slice) row(r uint64) (uint64, bool) {
	out, scale := uint64(0), uint64(1)
	for i := len(s.ranges) - 2; i >= 0; i-- {
		n := s.t.t.Shape[i]
		at := r % n
		r /= n
		if at < s.ranges[i].Start || at >= s.ranges[i].Stop {
			return 0, false
		}
		out += (at - s.ranges[i].Start) * scale
		scale *= s.ranges[i].Stop - s.ranges[i].Start
	}
	return out, true
}

// last is the range of the last dimension, in elements.
func (s *Slice) last() Range {
	if len(s.ranges) == 0 {
		return Range{0, 1}
	}
	return s.ranges[len(s.ranges)-1]
}

// bounds are the first byte of the tensor that the slice has, and the one after its last.
func (s *Slice) bounds() (lo, hi uint64) {
	var first, last uint64
	for i, r := range s.ranges {
		first = first*s.t.t.Shape[i] + r.Start
		last = last*s.t.t.Shape[i] + r.Stop - 1
	}
	return first * uint64(s.width), (last + 1) * uint64(s.width)
}

// runs calls f for each run of bytes that chunk i of seg and the slice share: n bytes from byte at of the chunk go to
// byte to of the slice. It stops where f returns false. Everything is in bytes, for a unit may be a part of an element,
// and nothing keeps a file from having units of several elements.
func (s *Slice) runs(seg *segment, i int, f func(at, to, n uint64) bool) {
	c := seg.chunks[i]
	size, width := uint64(seg.g.UnitSize), uint64(s.width)
	first, _ := seg.g.SegmentRange(seg.no)
	last := s.last()
	for h := range uint64(c.H) {
		// Positions in the whole tensor.
		begin := (first + c.First + h*c.Stride) * size
		end := begin + uint64(c.W)*size
		for at := begin; at < end; {
			r := at / (s.cols * width)
			stop := min(end, (r+1)*s.cols*width)
			lo, hi := max(at, (r*s.cols+last.Start)*width), min(stop, (r*s.cols+last.Stop)*width)
			if lo < hi {
				if to, ok := s.row(r); ok {
					to = to*(last.Stop-last.Start)*width + lo - (r*s.cols+last.Start)*width
					if !f(h*uint64(c.W)*size+lo-begin, to, hi-lo) {
						return
					}
				}
			}
			at = stop
		}
	}
}

func (s *Slice) touches(seg *segment, i int) bool {
	found := false
	s.runs(seg, i, func(uint64, uint64, uint64) bool { found = true; return false })
	return found
}

type sliceSinks struct {
	s      *Slice
	dst    []byte
	mu     sync.Mutex
	chunks int
}

type sliceSink struct {
	*sliceSinks
	seg *segment
}

func (*sliceSink) buffer(*partRun, uint64, uint64) []byte { return nil }
func (*sliceSink) part(*partRun) error                    { return nil }
func (*sliceSink) finish() error                          { return nil }
func (k *sliceSink) chunk(_ *partRun, i int, units []byte) error {
	k.s.runs(k.seg, i, func(at, to, n uint64) bool {
		copy(k.dst[to:to+n], units[at:])
		return true
	})
	k.mu.Lock()
	k.chunks++
	k.mu.Unlock()
	return nil
}
