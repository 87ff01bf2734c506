package codectest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

func isCorrupt(err error) bool { return errors.Is(err, codec.ErrCorrupt) }

const (
	fuzzBytes = 4 << 10 // most that a fuzzed chunk decodes to
	fuzzUnits = 2048
)

var scratches = sync.Pool{New: func() any { return new(codec.Scratch) }}

// ready is a coder that was fitted and parsed beforehand.
type ready struct {
	unit     tensor.DType
	enc, dec codec.Coder
}

// readyCoders makes coders of every type and level that the code suits, fitted to content that repeats and is uneven,
// and some to much narrower content, so that little of what comes has a frequency.
func readyCoders(f *testing.F, c codec.Codec) (made []ready) {
	for _, unit := range Units {
		for i, level := range append(levels, codec.Default) {
			data := mixed(unit, fuzzUnits)
			if i == len(levels) {
				data = Gaussian(unit, 100)
			}
			enc, err := c.Fit(unit, data, true, level)
			if err != nil {
				continue
			}
			dec, err := c.Parse(unit, enc.AppendTable(nil))
			if err != nil {
				f.Fatal(err)
			}
			made = append(made, ready{unit, enc, dec})
		}
	}
	return made
}

// FuzzRoundTrip fuzzes what Fit, EncodeChunk and DecodeChunks make of any bytes in a chunk of any type. Where split is
// a multiple of four, the table is fitted to the first split units of the input and codes the rest, or is fitted to
// all; else the coder is one that was made before, which is faster.
func FuzzRoundTrip(f *testing.F, c codec.Codec) {
	for k, what := range contents {
		for i, unit := range Units {
			f.Add(uint8(i), uint8(k), uint16(k%3*100), what.make(unit, 300))
			f.Add(uint8(3*i+k), uint8(k), uint16(1), what.make(unit, 300))
		}
	}
	made := readyCoders(f, c)
	f.Fuzz(func(t *testing.T, kind, level uint8, split uint16, data []byte) {
		var r ready
		if split%4 != 0 && len(made) > 0 {
			r = made[int(kind)%len(made)]
			data = data[:min(len(data), fuzzBytes, fuzzUnits*Size(r.unit))]
		} else {
			r.unit = Units[int(kind)%len(Units)]
			size := Size(r.unit)
			data = data[:min(len(data), fuzzBytes, fuzzUnits*size)]
			at := min(int(split)*size, len(data))
			sample := data[:at]
			data = data[at:]
			exact := len(sample) == 0
			if exact {
				sample = data
			}
			var err error
			r.enc, err = c.Fit(r.unit, sample, exact, levels[int(level)%len(levels)])
			if !fits(t, string(r.unit), err) {
				return
			}
			if r.dec, err = c.Parse(r.unit, r.enc.AppendTable(nil)); err != nil {
				t.Fatalf("parse: %v", err)
			}
		}
		data = data[:len(data)/Size(r.unit)*Size(r.unit)]
		s := scratches.Get().(*codec.Scratch)
		defer scratches.Put(s)
		stored, err := r.enc.EncodeChunk(nil, data, s)
		if errors.Is(err, codec.ErrUnsuitable) {
			return
		}
		if err != nil || len(stored) > len(data) {
			t.Fatalf("%d bytes of %s became %d: %v", len(data), r.unit, len(stored), err)
		}
		got, err := decode(t, r.dec, stored, len(data), s)
		if err != nil || string(got) != string(data) {
			t.Fatalf("%s: decode: %v", r.unit, err)
		}
	})
}

// FuzzDecode fuzzes Parse and DecodeChunks with any table and stored bytes. An empty table stands for one of a few
// good ones, so that fuzzing gets past Parse; what decodes with such a table must encode again.
func FuzzDecode(f *testing.F, c codec.Codec) {
	made := readyCoders(f, c)
	for i, r := range made {
		if stored, err := r.enc.EncodeChunk(nil, mixed(r.unit, 300), new(codec.Scratch)); err == nil {
			f.Add(uint8(slices.Index(Units, r.unit)), uint16(300), r.enc.AppendTable(nil), stored)
			f.Add(uint8(i), uint16(300), []byte(nil), stored)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, units uint16, table, stored []byte) {
		s := scratches.Get().(*codec.Scratch)
		defer scratches.Put(s)
		stored = stored[:min(len(stored), 2*fuzzBytes)]
		unit := Units[int(kind)%len(Units)]
		var enc, dec codec.Coder
		if len(table) == 0 && len(made) > 0 {
			r := &made[int(kind)%len(made)]
			unit, enc, dec = r.unit, r.enc, r.dec
		} else {
			var err error
			if dec, err = parse(t, c, unit, table); err != nil {
				return
			}
			enc = dec
		}
		n := int(units) % (fuzzUnits + 1) * Size(unit)
		got, err := decode(t, dec, stored, n, s)
		if err != nil {
			return
		}
		again, err := enc.EncodeChunk(nil, got, s)
		if errors.Is(err, codec.ErrUnsuitable) {
			return
		}
		if err != nil {
			t.Fatalf("what decoded does not encode: %v", err)
		}
		back, err := decode(t, dec, again, n, s)
		if err != nil || string(back) != string(got) {
			t.Fatalf("what decoded and was encoded does not decode: %v", err)
		}
	})
}

// Bench measures c on chunks of weights of the given type at the given level, in bytes of weights a second.
func Bench(b *testing.B, c codec.Codec, unit tensor.DType, level codec.Level) {
	const chunk, chunks = 32768, 32
	size := Size(unit)
	data := Gaussian(unit, chunk*chunks)
	enc, err := c.Fit(unit, data, true, level)
	if err != nil {
		b.Fatal(err)
	}
	dec, err := c.Parse(unit, enc.AppendTable(nil))
	if err != nil {
		b.Fatal(err)
	}
	s := new(codec.Scratch)
	var jobs []codec.Job
	stored := 0
	back := make([]byte, len(data))
	for at := 0; at < len(data); at += chunk * size {
		out, err := enc.EncodeChunk(nil, data[at:at+chunk*size], s)
		if err != nil {
			b.Fatal(err)
		}
		stored += len(out)
		jobs = append(jobs, codec.Job{Dst: back[at : at+chunk*size], Src: append(out, make([]byte, codec.Slack)...)[:len(out)]})
	}
	ratio := float64(len(data)) / float64(stored)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		buf := make([]byte, 0, 2*chunk*size)
		for b.Loop() {
			for at := 0; at < len(data); at += chunk * size {
				if _, err := enc.EncodeChunk(buf, data[at:at+chunk*size], s); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(ratio, "ratio")
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			dec.DecodeChunks(jobs, s)
		}
		for i := range jobs {
			if jobs[i].Err != nil {
				b.Fatal(jobs[i].Err)
			}
		}
		b.ReportMetric(ratio, "ratio")
	})
}
