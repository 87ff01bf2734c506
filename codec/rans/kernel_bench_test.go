//go:build amd64 && !noasm

package rans

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// benchUnits is larger than any cache: 128 MiB of BF16.
const benchUnits = 64 << 20

// bf16Weights repeats a Gaussian stretch, which no code of this package can notice.
func bf16Weights(b *testing.B) ([]byte, codec.Coder) {
	units := make([]byte, 2*benchUnits)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 1 << 20 {
		binary.LittleEndian.PutUint16(units[2*i:], toBF16(float32(r.NormFloat64()*0.02)))
	}
	for at := 2 << 20; at < len(units); at *= 2 {
		copy(units[at:], units[:at])
	}
	c, err := New().Fit(tensor.BF16, units[:2<<20], true, codec.Default)
	if err != nil {
		b.Fatal(err)
	}
	return units, c
}

const benchChunk = 2 * maxUnits

func benchRoutes(b *testing.B, f func(b *testing.B)) {
	eachRoute(func(route string) { b.Run(route, f) })
}

// loop calls f, which handles size bytes, until the benchmark has enough. Beside the rate by the clock it reports the rate by
// the time that the processor spent, which other work on the machine disturbs less.
func loop(b *testing.B, size int, f func()) {
	b.SetBytes(int64(size))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := cpuTime()
	for b.Loop() {
		f()
	}
	if spent := cpuTime() - begin; spent > 0 {
		b.ReportMetric(float64(size)*float64(b.N)/spent.Seconds()/1e6, "MB/cpu-s")
	}
}

func benchCopy(b *testing.B, units []byte) {
	b.Run("memcpy", func(b *testing.B) {
		dst, at := make([]byte, len(units)), 0
		copy(dst, units)
		loop(b, benchChunk, func() {
			copy(dst[at:at+benchChunk], units[at:])
			at = (at + benchChunk) % len(units)
		})
	})
}

// BenchmarkDecodeBF16 decodes chunks of 64 KiB, four at a time, from and to memory beyond the caches.
func BenchmarkDecodeBF16(b *testing.B) {
	units, c := bf16Weights(b)
	var s codec.Scratch
	var stored []byte
	var ends []int
	for at := 0; at < len(units); at += benchChunk {
		var err error
		if stored, err = c.EncodeChunk(stored, units[at:at+benchChunk], &s); err != nil {
			b.Fatal(err)
		}
		ends = append(ends, len(stored))
	}
	stored = append(stored, make([]byte, codec.Slack)...)
	dst := make([]byte, len(units))
	copy(dst, units)
	const batch = 4
	benchRoutes(b, func(b *testing.B) {
		var jobs [batch]codec.Job
		i := 0
		loop(b, batch*benchChunk, func() {
			for k := range jobs {
				begin := 0
				if i+k > 0 {
					begin = ends[i+k-1]
				}
				at := (i + k) * benchChunk
				jobs[k] = codec.Job{Dst: dst[at : at+benchChunk], Src: stored[begin:ends[i+k]]}
			}
			c.DecodeChunks(jobs[:], &s)
			if jobs[0].Err != nil {
				b.Fatal(jobs[0].Err)
			}
			i = (i + batch) % len(ends)
		})
	})
	benchCopy(b, units)
}

// BenchmarkEncodeBF16 encodes chunks of 64 KiB from and to memory beyond the caches.
func BenchmarkEncodeBF16(b *testing.B) {
	units, c := bf16Weights(b)
	var s codec.Scratch
	out := make([]byte, len(units)+planeAlign)
	copy(out, units)
	benchRoutes(b, func(b *testing.B) {
		at := 0
		loop(b, benchChunk, func() {
			if _, err := c.EncodeChunk(out[at:at:at+benchChunk+planeAlign], units[at:at+benchChunk], &s); err != nil {
				b.Fatal(err)
			}
			at = (at + benchChunk) % len(units)
		})
	})
	benchCopy(b, units)
}
