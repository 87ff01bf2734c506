//go:build !noasm

package rans

import (
	"math/bits"
	"unsafe"
)

// field is where a kernel finds or puts one value of each unit, next to each other.
type field struct {
	at    *byte
	step  int    // bytes a turn
	shift uint64 // of the value in the raw field
	class int    // logarithm of the width, at most 4
}

// unitRun is what a kernel needs to take whole blocks of units apart or to put them together, in turns of a vector.
// Kernels know where its fields are, and change some.
type unitRun struct {
	units                 *byte
	outside               *uint64
	turns, planes         int
	mant, top, sign, drop uint64 // how far the parts of a unit are shifted
	base, exps, tops      uint32
	kept, gone            uint32 // masks of the mantissa in the raw field, and of the dropped bits in the unit
	syms                  field
	raw                   [5]field
}

// fieldRead is how many bytes of a field a kernel of a route reads each turn, of which it needs step.
var fieldRead = [...]int{routeAVX2: 16, routeAVX512: 64}

// describe fills r for blocks of 64 units of a layout. It returns how many of the blocks may be read where merge says
// that the fields are read; none where no kernel suits the layout.
func (r *unitRun) describe(l *layout, units, syms []byte, planes *[8][]byte, blocks int, merge bool) int {
	if best == routeGeneric || l.size > 4 {
		return 0
	}
	perTurn := 32 / max(1, l.size/2)
	if best == routeAVX2 {
		perTurn /= 2
	}
	raw := l.rawBits()
	*r = unitRun{
		planes: len(l.widths),
		mant:   uint64(l.mant),
		top:    uint64(l.mant - l.top),
		sign:   uint64(8*uint(l.size) - raw),
		drop:   uint64(l.drop),
		base:   uint32(l.base),
		exps:   1<<l.exp - 1,
		tops:   1<<l.top - 1,
		kept:   1<<(raw-1) - 1,
		gone:   1<<l.drop - 1,
	}
	add := func(f *field, b []byte, width, shift uint) {
		step := perTurn * int(width) / 8
		if merge {
			blocks = min(blocks, (cap(b)-fieldRead[best])/(8*int(width)))
		}
		if len(b) > 0 {
			*f = field{&b[0], step, uint64(shift), bits.TrailingZeros(width)}
		}
	}
	width := uint(4)
	if l.top > 0 {
		width = 8
	}
	add(&r.syms, syms, width, 0)
	for k, w := range l.widths {
		raw -= uint(w)
		add(&r.raw[k], planes[k], uint(w), raw)
	}
	if blocks <= 0 {
		return 0
	}
	r.units, r.turns = &units[0], 64*blocks/perTurn
	return blocks
}

func (r *unitRun) pointer() *byte { return (*byte)(unsafe.Pointer(r)) }

// splitUnits takes blocks of 64 units apart like path.split, and returns how many; there are len(outside).
func splitUnits(l *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64) (blocks int) {
	var r unitRun
	if blocks = r.describe(l, src, syms, planes, len(outside), false); blocks == 0 {
		return 0
	}
	r.outside = &outside[0]
	switch wide := best == routeAVX512; {
	case l.size == 1 && wide:
		splitUnits1AVX512(r.pointer())
	case l.size == 1:
		splitUnits1AVX2(r.pointer())
	case l.size == 2 && wide:
		splitUnits2AVX512(r.pointer())
	case l.size == 2:
		splitUnits2AVX2(r.pointer())
	case wide:
		splitUnits4AVX512(r.pointer())
	default:
		splitUnits4AVX2(r.pointer())
	}
	return blocks
}

// mergeUnits puts blocks of 64 units in dst together like path.merge, and returns how many.
func mergeUnits(l *layout, dst, syms []byte, planes *[8][]byte) (blocks int) {
	var r unitRun
	if blocks = r.describe(l, dst, syms, planes, len(dst)/(64*l.size), true); blocks == 0 {
		return 0
	}
	switch wide := best == routeAVX512; {
	case l.size == 1 && wide:
		mergeUnits1AVX512(r.pointer())
	case l.size == 1:
		mergeUnits1AVX2(r.pointer())
	case l.size == 2 && wide:
		mergeUnits2AVX512(r.pointer())
	case l.size == 2:
		mergeUnits2AVX2(r.pointer())
	case wide:
		mergeUnits4AVX512(r.pointer())
	default:
		mergeUnits4AVX2(r.pointer())
	}
	return blocks
}
