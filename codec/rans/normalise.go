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
	var gain, loss ranking // of one more, greatest first; of one less, smallest first
	rank := func(s int) (up, down uint64) {
		v := f[s]
		if v > 0 && v < probTotal-1 {
			up = w[s]*uint64(cost[v]-cost[v+1]) + 1
		}
		if v > 1 {
			down = ^(w[s] * uint64(cost[v-1]-cost[v]))
		}
		return up, down
	}
	for s := range f {
		gain.key[s], loss.key[s] = rank(s)
	}
	gain.build()
	loss.build()
	move := func(s, by int) {
		f[s] = uint16(int(f[s]) + by)
		up, down := rank(s)
		gain.set(s, up)
		loss.set(s, down)
	}
	for ; sum > probTotal; sum-- {
		move(loss.first(), -1)
	}
	for ; sum < probTotal; sum++ {
		move(gain.first(), 1)
	}
	for range probTotal {
		a, b := gain.first(), loss.first()
		if a == b || gain.key[a] <= ^loss.key[b]+1 { // rounded costs can make a symbol worth less than itself
			return
		}
		move(a, 1)
		move(b, -1)
	}
}

// ranking is a tournament of 256 keys: the greatest is first, and of equals the one that stands first.
type ranking struct {
	key  [256]uint64
	node [256]uint8 // node[1] is the winner; node i is the better of nodes 2i and 2i+1, leaves following from 256 on
}

func (r *ranking) first() int { return int(r.node[1]) }

func (r *ranking) set(s int, key uint64) {
	r.key[s] = key
	for i := (s + 256) / 2; i > 0; i /= 2 {
		r.play(i)
	}
}

func (r *ranking) build() {
	for i := 255; i > 0; i-- {
		r.play(i)
	}
}

func (r *ranking) play(i int) {
	a, b := 2*i-256, 2*i-255
	if i < 128 {
		a, b = int(r.node[2*i]), int(r.node[2*i+1])
	}
	if r.key[b] > r.key[a] {
		a = b
	}
	r.node[i] = uint8(a)
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
