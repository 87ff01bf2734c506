package wcodec

import (
	"context"
	"fmt"
	"math"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/format"
)

// Tensor is one tensor of an open file.
type Tensor struct {
	m *Member
	t *format.Tensor
}

// Name is the tensor's name as the original header spells it.
func (t *Tensor) Name() string { return t.t.Name }

// DType is the element type as the original header spells it.
func (t *Tensor) DType() string { return string(t.t.DType) }

// Shape is the tensor's shape; the caller must not change it.
func (t *Tensor) Shape() []uint64 { return t.t.Shape }

// Size is the size of the plain tensor in bytes.
func (t *Tensor) Size() int64 { return int64(t.t.Length) }

// Digest identifies the decoded bytes: equal digests of tensors of equal type and shape mean equal bytes, whatever the code.
func (t *Tensor) Digest() [16]byte { return t.t.Digest }

// Member is the file that the tensor is in.
func (t *Tensor) Member() *Member { return t.m }

// StoredSize is what the tensor's segments take in the file: index, tables and coded data.
func (t *Tensor) StoredSize() int64 {
	n := int64(0)
	for i := range t.t.Segments {
		n += int64(t.t.Segments[i].StoredLen())
	}
	return n
}

// Codes names the codes of the tensor's segments, each once, in order of appearance.
func (t *Tensor) Codes() []string {
	var names []string
	var seen [256]bool
	for i := range t.t.Segments {
		id := t.t.Segments[i].Code
		if !seen[id] {
			seen[id] = true
			names = append(names, codeName(id))
		}
	}
	return names
}

func codeName(id uint8) string {
	c, err := registry.ByID(codec.ID(id))
	if err != nil {
		return fmt.Sprintf("unknown-%d", id)
	}
	return c.Name()
}

// label names the tensor in messages.
func (t *Tensor) label() string {
	switch {
	case t != t.m.bytes:
		return fmt.Sprintf("%s: tensor %q", t.m.r.file.Name(), t.t.Name)
	case t.m.m.Kind == format.KindBlob:
		return fmt.Sprintf("%s: member %q", t.m.r.file.Name(), t.m.m.Name)
	}
	return fmt.Sprintf("%s: trailing bytes of %q", t.m.r.file.Name(), t.m.m.Name)
}

// ReadInto decodes the tensor into dst, whose length is Size. Every chunk's checksum is verified. On error dst holds
// arbitrary bytes.
func (t *Tensor) ReadInto(ctx context.Context, dst []byte) error {
	if int64(len(dst)) != t.Size() {
		return fmt.Errorf("%s: destination has %d bytes, want %d", t.label(), len(dst), t.Size())
	}
	_, err := decodeAll(ctx, []*Tensor{t}, decodeOptions{}, func(s *segment) sink { return memorySink{s, dst} })
	return err
}

// Read returns the decoded tensor.
func (t *Tensor) Read(ctx context.Context) ([]byte, error) {
	if t.t.Length > math.MaxInt-codec.Slack {
		return nil, fmt.Errorf("%s: %d bytes do not fit memory", t.label(), t.t.Length)
	}
	dst := make([]byte, t.t.Length)
	if err := t.ReadInto(ctx, dst); err != nil {
		return nil, err
	}
	return dst, nil
}

// memorySink puts a segment's units in their places in a whole tensor.
type memorySink struct {
	s   *segment
	dst []byte
}

func (m memorySink) buffer(_ *partRun, lo, hi uint64) []byte {
	at := m.s.firstByte()
	return m.dst[at+lo : at+hi]
}

func (memorySink) chunk(*partRun, int, []byte) error { return nil }
func (memorySink) part(*partRun) error               { return nil }
func (memorySink) finish() error                     { return nil }
