// Package codectest is what every code must pass: round trips by bytes over every type and awkward content, the same
// bytes for the same arguments, nothing written outside the destination, and no panic whatever the stored bytes are. It
// has the fuzz targets and the benchmark of a code too. It knows the contract of package codec and no particular code.
package codectest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

const guard = 64 // bytes of poison on both sides of a destination

// lengths are numbers of units around every border that a code may have: of words, planes, groups and payloads.
var lengths = []int{
	0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 67, 127, 128, 129, 130, 191, 192, 193, 255, 256, 257, 319,
	320, 321, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 16383, 16384, 32767, 32768,
}

// few are the lengths for all but the first content.
var few = []int{1, 2, 63, 129, 256, 1025, 2047, 5000}

var levels = []codec.Level{codec.Default, codec.Fast, codec.Dense}

// Run runs the whole kit on c, for the given types or, without any, for Units; in short mode for those of them that
// differ in how they are split, and for no large chunk.
func Run(t *testing.T, c codec.Codec, units ...tensor.DType) {
	if len(units) == 0 {
		units = Units
		if testing.Short() {
			units = []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64, tensor.F8E4M3, tensor.F8E5M2, tensor.U8, tensor.I32}
		}
	}
	for _, unit := range units {
		t.Run("roundtrip/"+string(unit), func(t *testing.T) {
			t.Parallel()
			roundTrips(t, c, unit)
		})
		t.Run("hostile/"+string(unit), func(t *testing.T) {
			t.Parallel()
			hostile(t, c, unit)
		})
	}
	t.Run("batch", func(t *testing.T) { batches(t, c, units[0]) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, c, units[0]) })
}

func roundTrips(t *testing.T, c codec.Codec, unit tensor.DType) {
	s := new(codec.Scratch)
	for k, what := range contents {
		at := few
		if k == 0 {
			at = lengths
		}
		for _, n := range at {
			if testing.Short() && n > 2049 {
				continue
			}
			data := what.make(unit, n)
			for _, level := range levels {
				name := fmt.Sprintf("%d units of %s, level %d", n, what.name, level)
				coder, err := c.Fit(unit, data, true, level)
				if !fits(t, name, err) {
					continue
				}
				roundTrip(t, name, c, unit, coder, data, s)
			}
		}
	}
	// A table that was fitted to something else must code everything, or say that it cannot.
	for _, on := range contents {
		for _, exact := range []bool{false, true} {
			coder, err := c.Fit(unit, on.make(unit, 5000), exact, codec.Default)
			if !fits(t, on.name, err) {
				continue
			}
			for _, what := range contents {
				name := fmt.Sprintf("%s coded as %s", what.name, on.name)
				roundTrip(t, name, c, unit, coder, what.make(unit, 4099), s)
			}
		}
	}
}

// fits reports whether Fit succeeded; the only error it may give is codec.ErrUnsuitable.
func fits(t testing.TB, name string, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, codec.ErrUnsuitable) {
		t.Fatalf("%s: fit: %v", name, err)
	}
	return err == nil
}

// roundTrip encodes data as one chunk, in every way that must give the same bytes, and decodes it.
func roundTrip(t testing.TB, name string, c codec.Codec, unit tensor.DType, enc codec.Coder, data []byte, s *codec.Scratch) {
	t.Helper()
	table := enc.AppendTable(nil)
	if again := enc.AppendTable([]byte("abc")); string(again) != "abc"+string(table) {
		t.Fatalf("%s: AppendTable does not append", name)
	}
	dec, err := c.Parse(unit, table)
	if err != nil {
		t.Fatalf("%s: parse: %v", name, err)
	}
	if !bytes.Equal(dec.AppendTable(nil), table) {
		t.Fatalf("%s: table is not canonical", name)
	}
	src := bytes.Clone(data)
	prefix := []byte("prefix")
	out, err := enc.EncodeChunk(prefix, src, s)
	if !bytes.Equal(src, data) {
		t.Fatalf("%s: encoder changed its input", name)
	}
	if errors.Is(err, codec.ErrUnsuitable) {
		if string(out) != "prefix" {
			t.Fatalf("%s: dst is changed where the chunk is refused", name)
		}
		return
	}
	if err != nil || !bytes.HasPrefix(out, prefix) {
		t.Fatalf("%s: encode: %v", name, err)
	}
	stored := out[len(prefix):]
	if len(stored) > len(data) {
		t.Fatalf("%s: %d bytes became %d", name, len(data), len(stored))
	}
	roomy := append(make([]byte, 0, len(prefix)+3*len(data)+codec.Slack), prefix...)
	other := s
	if len(data) == 1025*Size(unit) { // not always: a fresh one costs some codes megabytes
		other = new(codec.Scratch)
	}
	if again, err := enc.EncodeChunk(roomy, src, other); err != nil || !bytes.Equal(again, out) {
		t.Fatalf("%s: another scratch and a roomy dst give other bytes: %v", name, err)
	}
	tight := bytes.Clone(stored)[:len(stored):len(stored)]
	slack := append(bytes.Clone(stored), bytes.Repeat([]byte{0xff}, codec.Slack)...)[:len(stored)]
	for _, in := range [][]byte{tight, slack} {
		got, err := decode(t, dec, in, len(data), s)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%s: decode: %v", name, err)
		}
		if !bytes.Equal(in, stored) {
			t.Fatalf("%s: decoder changed its input", name)
		}
	}
}

// poison is what lies around and in a destination before decoding.
var poison = func() []byte {
	b := make([]byte, guard+300<<10+guard)
	for i := range b {
		b[i] = byte(0xa5 + i)
	}
	return b
}()

// decode decodes one chunk of n bytes between two guards.
func decode(t testing.TB, dec codec.Coder, stored []byte, n int, s *codec.Scratch) ([]byte, error) {
	t.Helper()
	buf := make([]byte, guard+n+guard)
	copy(buf, poison)
	copy(buf[guard+n:], poison)
	job := []codec.Job{{Dst: buf[guard : guard+n], Src: stored, Err: errors.New("not set")}}
	dec.DecodeChunks(job, s)
	if !bytes.Equal(buf[:guard], poison[:guard]) || !bytes.Equal(buf[guard+n:], poison[:guard]) {
		t.Fatalf("decoder wrote outside of its %d bytes", n)
	}
	if err := job[0].Err; err != nil && !errors.Is(err, codec.ErrCorrupt) {
		t.Fatalf("error that is not ErrCorrupt: %v", err)
	}
	return buf[guard : guard+n], job[0].Err
}

// batches decodes several chunks in one call, one of them damaged beyond doubt: only that one fails.
func batches(t *testing.T, c codec.Codec, unit tensor.DType) {
	size := Size(unit)
	enc, err := c.Fit(unit, mixed(unit, 8192), true, codec.Default)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := c.Parse(unit, enc.AppendTable(nil))
	if err != nil {
		t.Fatal(err)
	}
	s := new(codec.Scratch)
	var jobs []codec.Job
	var want [][]byte
	for i, n := range []int{2048, 1000, 8192, 3000, 2049, 4096} {
		data := mixed(unit, n)
		stored, err := enc.EncodeChunk(nil, data, s)
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			stored = stored[:len(stored)/2]
		}
		want = append(want, data)
		jobs = append(jobs, codec.Job{Dst: make([]byte, n*size), Src: stored, Err: errors.New("not set")})
	}
	for n := 0; n <= len(jobs); n++ {
		part := append([]codec.Job(nil), jobs[:n]...)
		dec.DecodeChunks(part, s)
		for i, j := range part {
			if (j.Err != nil) != (i == 3) || j.Err == nil && !bytes.Equal(j.Dst, want[i]) {
				t.Fatalf("chunk %d of %d: %v", i, n, j.Err)
			}
		}
	}
}

// concurrent uses one coder from several goroutines, each with its own scratch, before anything has warmed it up.
func concurrent(t *testing.T, c codec.Codec, unit tensor.DType) {
	data := mixed(unit, 8192)
	enc, err := c.Fit(unit, data, true, codec.Default)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := c.Parse(unit, enc.AppendTable(nil))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s := new(codec.Scratch)
			for range 4 {
				stored, err := enc.EncodeChunk(nil, data, s)
				if err != nil {
					t.Error(err)
					return
				}
				job := []codec.Job{{Dst: make([]byte, len(data)), Src: stored}}
				if dec.DecodeChunks(job, s); job[0].Err != nil || !bytes.Equal(job[0].Dst, data) {
					t.Errorf("decode: %v", job[0].Err)
				}
			}
		})
	}
	group.Wait()
}

// mixed is content that every code can shrink, or at least store: uneven and repeating.
func mixed(unit tensor.DType, n int) []byte {
	b := Gaussian(unit, n)
	size := Size(unit)
	for at := n / 2; at+64 <= n; at += 64 {
		copy(b[at*size:(at+64)*size], b[:64*size])
	}
	return b
}
