package rans

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// survey is what one look at a sample tells of its exponents and low mantissa bits.
type survey struct {
	units int
	exps  [2048]uint32
	zeros [64]uint32 // zeros[t]: units whose mantissa ends in exactly t zeros; all zero counts as its whole width
}

// surveyUnits is the number of units beyond which a survey skips: blocks of 64, evenly spread, suffice for it.
const surveyUnits = 32 << 10

func (v *survey) look(l *layout, sample []byte) {
	n := len(sample) / l.size
	skip := n/surveyUnits | 1 // odd, so that it falls on every column of a matrix
	for from := 0; from < n; from += 64 * skip {
		part := sample[from*l.size : min(from+64, n)*l.size]
		v.units += len(part) / l.size
		switch l.size {
		case 1:
			for _, u := range part {
				v.add(l, uint64(u))
			}
		case 2:
			for ; len(part) >= 2; part = part[2:] {
				v.add(l, uint64(binary.LittleEndian.Uint16(part)))
			}
		case 4:
			for ; len(part) >= 4; part = part[4:] {
				v.add(l, uint64(binary.LittleEndian.Uint32(part)))
			}
		case 8:
			for ; len(part) >= 8; part = part[8:] {
				v.add(l, binary.LittleEndian.Uint64(part))
			}
		}
	}
}

func (v *survey) add(l *layout, u uint64) {
	v.exps[u>>(l.mant&63)&(1<<(l.exp&63)-1)&2047]++
	v.zeros[bits.TrailingZeros64(u|1<<(l.mant&63))]++
}

// drop is the number of low mantissa bits that it pays not to store, units without such zeros becoming exceptions.
func (v *survey) drop(l *layout) (best uint) {
	var gain int64
	exceptions := int64(0)
	for d := uint(1); d <= l.mant; d++ {
		exceptions += int64(v.zeros[d-1])
		if g := int64(v.units)*int64(d) - exceptions*int64(16+8*l.size); g > gain {
			best, gain = d, g
		}
	}
	return best
}

// base is the start of the window of 16 exponents that holds the most units, the lowest of equals.
func (v *survey) base(l *layout) (best uint64) {
	var inside, most uint64
	for e := uint64(0); e < 1<<l.exp; e++ {
		inside += uint64(v.exps[e])
		if e >= 16 {
			inside -= uint64(v.exps[e-16])
		}
		if e >= 15 && inside > most {
			best, most = e-15, inside
		}
	}
	return best
}

// uneven reports whether one exponent or one mantissa is nearly all there is.
func (v *survey) uneven(l *layout, mode uint64) bool {
	return v.zeros[l.mant] > uint32(v.units/8*7) || v.exps[mode] > uint32(v.units/8*7)
}

// mode is the most frequent index in the window.
func (v *survey) mode(base uint64) (best byte) {
	for i := byte(1); i < 16; i++ {
		if v.exps[base+uint64(i)] > v.exps[base+uint64(best)] {
			best = i
		}
	}
	return best
}

// counts are how often each symbol comes up in a sample, and how many units are exceptions.
type counts struct {
	symbols    [256]uint32
	exceptions int
}

var fitWork = sync.Pool{New: func() any { return new(work) }}

// count splits the sample as the encoder does, chunk by chunk. An exception counts as the index mode.
func (l *layout) count(sample []byte, mode byte) *counts {
	c := new(counts)
	w := fitWork.Get().(*work)
	defer fitWork.Put(w)
	l.setWidths()
	f := &floatCoder{layout: *l, path: pathOf(l)}
	perSym := 2
	if l.top > 0 {
		perSym = 1
	}
	step := maxUnits * l.size
	for len(sample) > 0 {
		part := sample[:min(step, len(sample))]
		sample = sample[len(part):]
		n := len(part) / l.size
		f.split(w, w.words[:l.planeBytes(n, 0)], part)
		syms := w.syms[0][:n/perSym] // a lone last unit is not counted
		for k, set := range w.outside[:(n+63)/64] {
			c.exceptions += bits.OnesCount64(set)
			for ; set != 0; set &= set - 1 {
				i := 64*k + bits.TrailingZeros64(set)
				if i/perSym == len(syms) {
					continue
				}
				if sym := &syms[i/perSym]; i%perSym == 0 {
					*sym = *sym&0xf0 | mode
				} else {
					*sym = *sym&15 | mode<<4
				}
			}
		}
		histogram(&c.symbols, syms)
	}
	return c
}

// weightScale is the weight of a symbol that came up once.
const weightScale = 256

// weigh turns counts into weights. Where the sample is not all there is, the expectation m of a symbol whose two halves
// were independent is mixed in: (2c + 1) m / (2m + 1) for c counted, which is near c for what is frequent and near m for
// what is too rare to be counted.
func (c *counts) weigh(exact bool) (w weights) {
	var low, high [16]uint64
	total := uint64(0)
	for s, v := range c.symbols {
		w[s] = uint64(v) * weightScale
		low[s&15] += uint64(v)
		high[s>>4] += uint64(v)
		total += uint64(v)
	}
	if exact || total == 0 {
		return w
	}
	for s, v := range c.symbols {
		m := low[s&15] * high[s>>4] * weightScale / total
		w[s] = (2*uint64(v) + 1) * m * weightScale / (2*m + weightScale)
	}
	return w
}

// fit chooses the frequencies and estimates the bits of the sample. A symbol that is rarer than what its exceptions
// cost against what a frequency takes from the others gets none.
func (c *counts) fit(l layout, n int, exact bool) estimate {
	w := c.weigh(exact)
	perSym := uint64(2)
	if l.top > 0 {
		perSym = 1
	}
	total := w.sum()
	if total == 0 {
		return estimate{}
	}
	exceptionBits := uint64(16 + 8*l.size)
	// A frequency of 1 costs every symbol log2(4096/4095) bits, 1/2839, and saves the exceptions less its own 12 bits.
	saved := perSym*exceptionBits - 10
	top := w.top()
	rare := uint64(0)
	for s, v := range w {
		if s != top && v*saved*2839 < total {
			rare += v
			w[s] = 0
		}
	}
	w[top] += rare
	f := w.normalise()
	// From weights, among which a prior may be, to the symbols that the sample has.
	hi, lo := bits.Mul64(w.cost(f)+rare*perSym*exceptionBits*costOne, uint64(n)/perSym)
	sum, _ := bits.Div64(hi, lo, total)
	sum += uint64(c.exceptions)*exceptionBits*costOne + uint64(n)*uint64(l.rawBits())*costOne
	sum += uint64(chunksOf(n)) * (blockBits - 8*payloadCap) * costOne
	coder := newFloatCoder(l, f, 0)
	sum, coder.bits = perUnit(sum, n, coder.AppendTable(nil), exact)
	return estimate{coder, sum}
}

// fitFloat chooses drop, base and frequencies, and under codec.Dense between pairs and joint symbols.
// uneven says that bytes may be the better symbols.
func fitFloat(f tensor.FloatFields, sample []byte, exact bool, level codec.Level) (best estimate, uneven bool) {
	l := layout{size: f.Bits() / 8, exp: uint(f.Exp), mant: uint(f.Mant)}
	n := len(sample) / l.size
	var v survey
	v.look(&l, sample)
	l.drop = v.drop(&l)
	l.base = v.base(&l)
	mode := v.mode(l.base)
	best = l.count(sample, mode).fit(l, n, exact)
	uneven = best.coder == nil || best.bits > uint64(n)*uint64(l.size)*(15*8*costOne/16) || v.uneven(&l, l.base+uint64(mode))
	l.top = min(4, l.mant-l.drop)
	if level != codec.Dense || l.top == 0 {
		return best, uneven
	}
	c := l.count(sample, mode)
	for {
		if e := c.fit(l, n, exact); e.beats(best, denseGain) {
			best = e
		}
		if l.top == 1 {
			return best, uneven
		}
		l.top--
		c.halve()
	}
}

// halve merges the symbols that differ in their lowest mantissa bit.
func (c *counts) halve() {
	var merged [256]uint32
	for s, v := range c.symbols {
		merged[s>>5<<4|s&15] += v
	}
	c.symbols = merged
}
