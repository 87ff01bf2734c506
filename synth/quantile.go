package synth

import (
	"math"
	"math/bits"
	"sync"
)

const (
	pieceBits  = 5                      // pieces to a halving of the tail, as a power of two
	fracBits   = 31 - pieceBits         // bits of a draw below its piece
	pieces     = 32 << pieceBits        // of a table
	unit       = 1.0 / (1 << 32)        // deviates are integers of this size
	phi        = 0x9E3779B97F4A7C15     // the odd step of a counter
	fracMask   = 1<<fracBits - 1        //
	pieceMask  = 1<<pieceBits - 1       //
	studentStd = 0.77459666924148337704 // what brings Student's t of 5 degrees to unit variance: sqrt(3/5)
)

// piece is a straight part of an inverse tail function: at its low end of probability the deviate is base, and it falls
// by drop to the other end, both in units of 2^-32.
type piece struct{ base, drop int64 }

// quantiles is an inverse tail function: piece lz<<5|k begins at probability 2^-(lz+1) * (1 + k/32).
type quantiles [pieces]piece

// lookup returns the deviate, not negative, that is exceeded with probability w/2^32. w is odd, so it is never 0.
func (q *quantiles) lookup(w uint32) int64 {
	lz := bits.LeadingZeros32(w)
	n := w << (lz & 31)
	p := &q[(lz<<pieceBits|int(n>>fracBits&pieceMask))&(pieces-1)]
	return p.base - p.drop*int64(n&fracMask)>>fracBits
}

// newQuantiles inverts a tail function by Newton's method, walking from the centre outwards: the function is convex,
// so a start nearer the centre converges from one side.
func newQuantiles(tail, density func(float64) float64, scale float64) *quantiles {
	at := func(p, start float64) float64 {
		z := start
		for range 60 {
			next := z + (tail(z)-p)/float64(2*density(z))
			if next <= z {
				break
			}
			z = next
		}
		return z
	}
	q, z, above := new(quantiles), 0.0, int64(0)
	for i := range pieces {
		lz, k := i>>pieceBits, pieceMask-i&pieceMask
		p := float64(math.Float64frombits(uint64(1023-lz-1)<<52) * (1 + float64(float64(k)/(1<<pieceBits))))
		z = at(p, z)
		base := int64(math.Floor(float64(float64(z*scale) * (1 << 32))))
		q[lz<<pieceBits|k] = piece{base, base - above}
		above = base
	}
	return q
}

var (
	normalTable  = sync.OnceValue(func() *quantiles { return newQuantiles(normalTail, normalDensity, 1) })
	studentTable = sync.OnceValue(func() *quantiles { return newQuantiles(studentTail, studentDensity, studentStd) })
	// exponentialTable is the unit exponential distribution, whose tail is e^-x; half of it is what newQuantiles expects
	// of a density.
	exponentialTable = sync.OnceValue(func() *quantiles {
		return newQuantiles(func(x float64) float64 { return exp(-x) }, func(x float64) float64 { return exp(-x) / 2 }, 1)
	})
)

// mix is a bijection of 64 bits in which every input bit moves every output bit (D. Stafford's variant 13).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// stream is a sequence of random 64-bit numbers that can be read anywhere.
type stream uint64

// at is the i-th number of the sequence.
func (s stream) at(i uint64) uint64 { return mix(uint64(s) + (i+1)*phi) }

// sub is another sequence, without relation to this one.
func (s stream) sub(n uint64) stream { return stream(mix(uint64(s) ^ mix(n*phi+1))) }

// draw is the i-th 32-bit number: two to a number of the sequence.
func (s stream) draw(i uint64) uint32 { return uint32(s.at(i>>1) >> ((i & 1) * 32)) }

// deviate turns a draw into a signed deviate in units of 2^-32: the lowest bit is the sign.
func (q *quantiles) deviate(u uint32) int64 {
	z, sign := q.lookup(u|1), -int64(u&1)
	return (z ^ sign) - sign
}

// uniform is a number of [lo, hi) from a draw.
func uniform(u uint32, lo, hi float64) float64 {
	return lo + float64((hi-lo)*float64(float64(u)*unit))
}

// run fills dst with the deviates first, first+1, ... of the stream, times scale (which carries the unit).
func (q *quantiles) run(dst []float32, s stream, first uint64, scale float64) {
	if first&1 == 1 && len(dst) > 0 {
		dst[0] = q.scaled(s.draw(first), scale)
		dst, first = dst[1:], first+1
	}
	c := uint64(s) + (first>>1+1)*phi
	for ; len(dst) >= 2; dst = dst[2:] {
		h := mix(c)
		c += phi
		// What scaled does, twice: the compiler does not inline it.
		lo, hi := uint32(h), uint32(h>>32)
		x := float32(float64(q.lookup(lo|1)) * scale)
		y := float32(float64(q.lookup(hi|1)) * scale)
		dst[0] = math.Float32frombits(math.Float32bits(x) | lo<<31)
		dst[1] = math.Float32frombits(math.Float32bits(y) | hi<<31)
	}
	if len(dst) > 0 {
		dst[0] = q.scaled(uint32(mix(c)), scale)
	}
}

// scaled is the deviate of a draw times scale, rounded to single precision.
func (q *quantiles) scaled(u uint32, scale float64) float32 {
	f := float32(float64(q.lookup(u|1)) * scale)
	return math.Float32frombits(math.Float32bits(f) | u<<31)
}
