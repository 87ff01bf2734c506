package rans

import (
	"math/bits"
	"sync"
)

// Everything that decides a stored byte is integer arithmetic, so that every platform writes the same. Costs are bits
// in units of 2^-16.
const costOne = 1 << 16

// costs returns the cost of a symbol of frequency f, 12 - log2 f, for f from 1 to 4096.
var costs = sync.OnceValue(func() *[probTotal + 1]uint32 {
	t := new([probTotal + 1]uint32)
	for f := uint32(1); f <= probTotal; f++ {
		t[f] = probBits*costOne - log2(f)
	}
	return t
})

// log2 is the binary logarithm of v in units of 2^-16, rounded down: squaring a number of 1 to 2 doubles its
// logarithm, whose next bit is then whether the square reached 2.
func log2(v uint32) uint32 {
	e := bits.Len32(v) - 1
	x := uint64(v) << (31 - e)
	r := uint32(e) << 16
	for bit := uint32(1 << 15); bit > 0; bit >>= 1 {
		x = x * x >> 31
		if x >= 1<<32 {
			x >>= 1
			r |= bit
		}
	}
	return r
}

// weights are how often symbols are expected, in any unit. Their sum is below 2^40.
type weights [256]uint64

func (w *weights) sum() (total uint64) {
	for _, v := range w {
		total += v
	}
	return total
}

// top is the symbol of the greatest weight, the smallest of equals.
func (w *weights) top() (best int) {
	for s, v := range w {
		if v > w[best] {
			best = s
		}
	}
	return best
}

// normalise returns the frequencies that code symbols of these weights in the fewest bits: a symbol of any weight gets
// one. Where fewer than two have weight, further symbols get the frequency 1, the smallest first.
func (w *weights) normalise() *freqs {
	f, total := new(freqs), w.sum()
	sum, present := 0, 0
	for s, v := range w {
		if v != 0 {
			f[s] = uint16(min(max(1, (v*probTotal+total/2)/total), probTotal-1))
			sum += int(f[s])
			present++
		}
	}
	for s := 0; present < 2; s++ {
		if f[s] == 0 {
			f[s] = 1
			sum++
			present++
		}
	}
	w.balance(f, sum)
	return f
}

// balance moves frequencies up or down until they sum to 4096, each step where it costs least or gains most, and then
// moves single ones from symbol to symbol while that gains anything.
func (w *weights) balance(f *freqs, sum int) {
	cost := costs()
	var gain, loss weights // of one more, of one less
	update := func(s int) {
		gain[s], loss[s] = 0, 1<<63
		if v := f[s]; v > 0 && v < probTotal-1 {
			gain[s] = w[s]*uint64(cost[v]-cost[v+1]) + 1
		}
		if v := f[s]; v > 1 {
			loss[s] = w[s] * uint64(cost[v-1]-cost[v])
		}
	}
	for s := range f {
		update(s)
	}
	cheapest := func() (best int) {
		for s, v := range loss {
			if v < loss[best] {
				best = s
			}
		}
		return best
	}
	up := func(s int) { f[s]++; update(s) }
	down := func(s int) { f[s]--; update(s) }
	for ; sum > probTotal; sum-- {
		down(cheapest())
	}
	for ; sum < probTotal; sum++ {
		up(gain.top())
	}
	for range probTotal {
		a, b := gain.top(), cheapest()
		if gain[a] <= loss[b]+1 {
			return
		}
		up(a)
		down(b)
	}
}

// cost is what coding the symbols takes with the frequencies f, in the units of both.
func (w *weights) cost(f *freqs) (total uint64) {
	cost := costs()
	for s, v := range w {
		if f[s] != 0 {
			total += v * uint64(cost[f[s]])
		}
	}
	return total
}

// histogram counts bytes.
func histogram(h *[256]uint32, b []byte) {
	var part [3][256]uint32
	for len(b) >= 4 {
		h[b[0]]++
		part[0][b[1]]++
		part[1][b[2]]++
		part[2][b[3]]++
		b = b[4:]
	}
	for _, x := range b {
		h[x]++
	}
	for s := range h {
		h[s] += part[0][s] + part[1][s] + part[2][s]
	}
}
