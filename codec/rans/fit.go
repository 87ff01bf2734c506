package rans

import (
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

const (
	// blockBits is what a symbol block stores beyond the information of its symbols: states and a count, less the 7.5
	// bits a lane by which a state grows before its first word. The payload is not counted.
	blockBits = 8 * (stateBytes - 30 + 2)
	// A slower mode must save one part in these to be chosen.
	denseGain  = 200
	planesGain = 100
)

// estimate is a candidate and the bits that it takes for the sample, in units of 2^-16.
type estimate struct {
	coder codec.Coder
	bits  uint64
}

// beats reports whether e is smaller than o by more than one part in gain.
func (e estimate) beats(o estimate, gain uint64) bool {
	return e.coder != nil && (o.coder == nil || e.bits+o.bits/gain < o.bits)
}

// Fit considers pairs for floats and planes for all else; planes too where that is 1% smaller for floats
// of one byte, or floats that are constant, or spread too widely for a window; and under codec.Dense the joint mode and planes where that saves
// 0.5%. It returns codec.ErrUnsuitable where the sample would not shrink.
func (code) Fit(unit tensor.DType, sample []byte, exact bool, level codec.Level) (codec.Coder, error) {
	size := unitSize(unit)
	n := len(sample) / size
	if n == 0 {
		return nil, unsuitable("nothing to fit to")
	}
	plain := uint64(n) * uint64(8*size) * costOne
	if float, ok := unit.Float(); ok {
		best, uneven := fitFloat(float, sample[:n*size], exact, level)
		gain := uint64(planesGain)
		if level == codec.Dense {
			gain = denseGain
		}
		if uneven || level == codec.Dense || size == 1 && level == codec.Default {
			if e := fitPlanes(size, sample[:n*size], exact); e.beats(best, gain) {
				best = e
			}
		}
		return best.answer(plain)
	}
	return fitPlanes(size, sample[:n*size], exact).answer(plain)
}

func (e estimate) answer(plain uint64) (codec.Coder, error) {
	if e.coder == nil || e.bits >= plain {
		return nil, unsuitable("sample does not shrink")
	}
	return e.coder, nil
}

// chunksOf is the number of chunks that n units fill.
func chunksOf(n int) int { return (n + maxUnits - 1) / maxUnits }

// perUnit adds to the bits of a sample what the table costs, where the sample is all there is, and makes bits a unit.
func perUnit(bits uint64, n int, table []byte, exact bool) (total uint64, each float64) {
	if exact {
		bits += uint64(8*len(table)) * costOne
	}
	return bits, float64(bits) / float64(uint64(n)*costOne)
}
