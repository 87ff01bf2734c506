package zstd

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

func repetitive(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		if i < 100 || r.IntN(30) == 0 {
			b[i] = byte(r.IntN(20))
		} else {
			b[i] = b[i-100]
		}
	}
	return b
}

func TestLevelsShrink(t *testing.T) {
	src := repetitive(maxChunk)
	for _, level := range []codec.Level{codec.Default, codec.Fast, codec.Dense} {
		c, err := New().Fit(tensor.U8, src, true, level)
		if err != nil {
			t.Fatal(err)
		}
		if b := c.BitsPerUnit(); b <= 0 || b > 6 {
			t.Fatalf("level %d: %.2f bits a byte estimated", level, b)
		}
		var s codec.Scratch
		stored, err := c.EncodeChunk([]byte("before"), src, &s)
		if err != nil || !bytes.HasPrefix(stored, []byte("before")) || len(stored) > len(src)*3/4 {
			t.Fatalf("level %d: %d bytes, %v", level, len(stored), err)
		}
		job := []codec.Job{{Dst: make([]byte, len(src)), Src: stored[6:]}}
		c.DecodeChunks(job, &s)
		if job[0].Err != nil || !bytes.Equal(job[0].Dst, src) {
			t.Fatal(job[0].Err)
		}
	}
}

// Frames that zstd itself accepts, but FORMAT does not.
func TestStrangeFrames(t *testing.T) {
	src := repetitive(5000)
	frame := func(opts ...zstd.EOption) []byte {
		w, err := zstd.NewWriter(nil, append(opts, zstd.WithEncoderConcurrency(1))...)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(src, nil)
	}
	good := frame(zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	var streamed bytes.Buffer
	w, _ := zstd.NewWriter(&streamed, zstd.WithEncoderCRC(false))
	w.Write(src[:3000])
	w.Flush()
	w.Write(src[3000:])
	w.Close()
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0}
	c, err := New().Parse(tensor.U8, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		frame []byte
		size  int
		ok    bool
	}{
		{"good", good, len(src), true},
		{"checksum", frame(zstd.WithEncoderCRC(true)), len(src), false},
		{"no content size", streamed.Bytes(), len(src), false},
		{"shorter chunk", good, len(src) - 1, false},
		{"longer chunk", good, len(src) + 1, false},
		{"trailing byte", append(good[:len(good):len(good)], 0), len(src), false},
		{"trailing frame", append(good[:len(good):len(good)], skippable...), len(src), false},
		{"leading frame", append(skippable[:9:9], good...), len(src), false},
		{"skippable frame for nothing", skippable, 0, false},
		{"nothing", nil, 0, false},
	} {
		job := []codec.Job{{Dst: make([]byte, tc.size), Src: tc.frame}}
		c.DecodeChunks(job, new(codec.Scratch))
		if got := job[0].Err; (got == nil) != tc.ok || got != nil && !errors.Is(got, codec.ErrCorrupt) {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestUnsuitable(t *testing.T) {
	noise := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	if _, err := New().Fit(tensor.U8, noise, true, codec.Default); !errors.Is(err, codec.ErrUnsuitable) {
		t.Fatal(err)
	}
	if _, err := New().Parse(tensor.U8, []byte{0}); !errors.Is(err, codec.ErrCorrupt) {
		t.Fatal(err)
	}
	c, _ := New().Parse(tensor.U8, nil)
	for _, n := range []int{0, 1, 100, maxChunk + 1} {
		if out, err := c.EncodeChunk([]byte{7}, noise[:n], new(codec.Scratch)); !errors.Is(err, codec.ErrUnsuitable) || len(out) != 1 {
			t.Fatal(n, err)
		}
	}
}
