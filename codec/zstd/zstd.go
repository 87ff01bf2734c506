// Package zstd is the code `zstd` of FORMAT section "Codes": every chunk one zstd frame (RFC 8878) with its content
// size, without checksum or dictionary. It is for what repeats: constants, zeros, indices, text. It knows nothing of
// units, and leaves the compressing to github.com/klauspost/compress/zstd.
package zstd

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

const (
	// maxChunk is the most that a chunk decodes to (FORMAT section "Geometry").
	maxChunk = tensor.MaxChunkBytes
	// The trial that Fit makes compresses tryPieces pieces of tryBytes, evenly spread over the sample.
	tryPieces = 4
	tryBytes  = 32 << 10
)

// New returns the code. It suits every unit whose bytes repeat.
func New() codec.Codec { return code{} }

type code struct{}

func (code) ID() codec.ID { return codec.Zstd }
func (code) Name() string { return "zstd" }

// FindsRepeats marks the code as a codec.RepeatFinder.
func (code) FindsRepeats() {}

// trials keeps encoders between calls of Fit, which has no scratch of its own: making one costs more than the trial of
// a small tensor, and there are files of ninety thousand of them.
var trials = sync.Pool{New: func() any { return new(codec.Scratch) }}

// Fit compresses at most 128 KiB of the sample to see what zstd makes of it. It returns codec.ErrUnsuitable where that
// does not shrink.
func (code) Fit(unit tensor.DType, sample []byte, _ bool, level codec.Level) (codec.Coder, error) {
	unitBytes := max(1, unit.Bits()/8)
	s := trials.Get().(*codec.Scratch)
	defer trials.Put(s)
	var plain, stored int
	var buf []byte
	for _, piece := range pieces(sample, unitBytes) {
		buf = encode(buf[:0], piece, level, s)
		plain += len(piece)
		stored += min(len(buf), len(piece))
	}
	if stored >= plain {
		return nil, fmt.Errorf("zstd: %d bytes of the sample do not shrink: %w", plain, codec.ErrUnsuitable)
	}
	return &coder{level: level, bits: float64(8*unitBytes*stored) / float64(plain)}, nil
}

// pieces cuts out of the sample what Fit tries.
func pieces(sample []byte, unitBytes int) [][]byte {
	if len(sample) <= tryPieces*tryBytes {
		return [][]byte{sample}
	}
	out := make([][]byte, tryPieces)
	for i := range out {
		at := (len(sample) - tryBytes) / (tryPieces - 1) * i
		at -= at % unitBytes
		out[i] = sample[at : at+tryBytes]
	}
	return out
}

// Parse accepts the empty table only.
func (code) Parse(unit tensor.DType, table []byte) (codec.Coder, error) {
	if len(table) != 0 {
		return nil, fmt.Errorf("zstd: table of %d bytes where none belongs: %w", len(table), codec.ErrCorrupt)
	}
	return &coder{bits: float64(max(8, unit.Bits()))}, nil
}

type coder struct {
	level codec.Level
	bits  float64
}

func (c *coder) AppendTable(dst []byte) []byte { return dst }

func (c *coder) BitsPerUnit() float64 { return c.bits }

// EncodeChunk fails with codec.ErrUnsuitable where the frame is not smaller than src, and for more than 512 KiB.
func (c *coder) EncodeChunk(dst, src []byte, s *codec.Scratch) ([]byte, error) {
	if len(src) > maxChunk {
		return dst, fmt.Errorf("zstd: chunk of %d bytes: %w", len(src), codec.ErrUnsuitable)
	}
	out := encode(dst, src, c.level, s)
	if len(out)-len(dst) >= len(src) {
		return dst, fmt.Errorf("zstd: chunk of %d bytes does not shrink: %w", len(src), codec.ErrUnsuitable)
	}
	return out, nil
}

func (c *coder) DecodeChunks(jobs []codec.Job, s *codec.Scratch) {
	for i := range jobs {
		jobs[i].Err = decode(jobs[i].Dst, jobs[i].Src, s)
	}
}

// engines are the encoders, by level, and the decoder of one goroutine, made when first used and kept in its Scratch.
type engines struct {
	enc [3]*zstd.Encoder
	dec *zstd.Decoder
}

func enginesOf(s *codec.Scratch) *engines {
	e, ok := s.Private[codec.Zstd].(*engines)
	if !ok {
		e = new(engines)
		s.Private[codec.Zstd] = e
	}
	return e
}

func encode(dst, src []byte, level codec.Level, s *codec.Scratch) []byte {
	slot, speed := 0, zstd.SpeedDefault
	switch level {
	case codec.Fast:
		slot, speed = 1, zstd.SpeedFastest
	case codec.Dense:
		slot, speed = 2, zstd.SpeedBetterCompression
	}
	e := enginesOf(s)
	if e.enc[slot] == nil {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(maxChunk), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
			zstd.WithZeroFrames(true), zstd.WithLowerEncoderMem(true),
			zstd.WithAllLitEntropyCompression(true)) // weights rarely repeat, but their exponents are uneven
		if err != nil {
			panic("zstd: encoder options: " + err.Error()) // constant options: a test makes every level
		}
		e.enc[slot] = w
	}
	return e.enc[slot].EncodeAll(src, dst)
}

func decode(dst, src []byte, s *codec.Scratch) error {
	if err := checkFrame(src, len(dst)); err != nil {
		return err
	}
	e := enginesOf(s)
	if e.dec == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk),
			zstd.WithDecoderMaxWindow(maxChunk), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic("zstd: decoder options: " + err.Error())
		}
		e.dec = d
	}
	out, err := e.dec.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return fmt.Errorf("zstd: %v: %w", err, codec.ErrCorrupt)
	}
	if len(out) != len(dst) {
		return fmt.Errorf("zstd: frame holds %d bytes, chunk has %d: %w", len(out), len(dst), codec.ErrCorrupt)
	}
	return nil
}

// checkFrame makes sure that src is exactly one frame of the form that FORMAT demands, before anything is decoded.
func checkFrame(src []byte, size int) error {
	bad := func(what string) error { return fmt.Errorf("zstd: %s: %w", what, codec.ErrCorrupt) }
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return bad(err.Error())
	}
	switch {
	case h.Skippable:
		return bad("skippable frame")
	case h.DictionaryID != 0:
		return bad("frame names a dictionary")
	case h.HasCheckSum:
		return bad("frame has a checksum")
	case !h.HasFCS || h.FrameContentSize != uint64(size):
		return bad(fmt.Sprintf("frame does not state the chunk's size of %d", size))
	}
	for at := h.HeaderSize; ; {
		if len(src)-at < 3 {
			return bad("frame ends inside a block header")
		}
		b := uint32(src[at]) | uint32(src[at+1])<<8 | uint32(src[at+2])<<16
		n := int(b >> 3)
		if b>>1&3 == 1 { // a run: one byte, however long
			n = 1
		}
		at += 3
		if n > len(src)-at {
			return bad("frame ends inside a block")
		}
		at += n
		if b&1 == 1 {
			if at != len(src) {
				return bad(fmt.Sprintf("%d bytes after the frame", len(src)-at))
			}
			return nil
		}
	}
}
