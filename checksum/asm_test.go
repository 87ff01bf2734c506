//go:build amd64 && !noasm

package checksum

import (
	"math/rand/v2"
	"testing"
)

var routes = map[route]string{routeGeneric: "generic", routeAVX2: "avx2", routeAVX512: "avx512"}

// eachRoute runs f once for every route that this machine can take.
func eachRoute[T interface {
	testing.TB
	Run(string, func(T)) bool
}](t T, f func(t T)) {
	was := best
	defer func() { best = was }()
	for r := routeGeneric; r <= detect(); r++ {
		best = r
		t.Run(routes[r], f)
	}
}

func checkRoutes(t *testing.T, start *[columns]uint64, b []byte) {
	want := *start
	accumulateGeneric(&want, b)
	eachRoute(t, func(t *testing.T) {
		got := *start
		accumulate(&got, b)
		if got != want {
			t.Fatalf("%d rows: columns differ from the generic ones", len(b)/rowBytes)
		}
	})
}

func TestRoutesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{0, 1, 2, 3, 31, 32, 33, 64, 65, maxRows} {
		// One byte off alignment, and columns that are not zero at the start.
		b := make([]byte, rows*rowBytes+1)[1:]
		var start [columns]uint64
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		for i := range start {
			start[i] = rng.Uint64()
		}
		checkRoutes(t, &start, b)
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(5), uint64(9))
	f.Fuzz(func(t *testing.T, seed []byte, rows uint16, first uint64) {
		if len(seed) == 0 {
			return
		}
		b := make([]byte, int(rows%100)*rowBytes)
		for i := range b {
			b[i] = seed[i%len(seed)] + byte(i>>8)
		}
		var start [columns]uint64
		for i := range start {
			start[i] = first * uint64(i)
		}
		checkRoutes(t, &start, b)
	})
}

func BenchmarkSum64(b *testing.B) {
	data := make([]byte, 64<<10)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	eachRoute(b, func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			Sum64(data)
		}
	})
	b.Run("memcpy", func(b *testing.B) {
		dst := make([]byte, len(data))
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			copy(dst, data)
		}
	})
}
