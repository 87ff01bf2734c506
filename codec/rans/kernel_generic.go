package rans

import "encoding/binary"

// The primitives below are the specification of the inner loops. Every one of them is total: whatever the bytes, it
// neither panics nor writes outside its slices, so long as the lengths are as its comment demands. The dispatching
// functions of the same names without "Generic" are in kernel_noasm.go, or in the file of an architecture that has
// something faster; those give the same results on every input.

const (
	lanes      = 32
	groupSyms  = 128     // symbols of a full group: four steps of 32 lanes
	lowerBound = 1 << 16 // of a state
	probBits   = 12
	probTotal  = 1 << probBits
	rcpShift   = 44
)

// A decoding table entry holds the symbol in bits 0 to 7, slot - start in bits 8 to 19 and the frequency in bits 20
// to 31, so that a step is x = freq * (x >> 12) + bias.

// encEntry is what the encoder knows of a symbol.
type encEntry struct {
	rcp   uint64 // ceil(2^44 / freq): x * rcp >> 44 is x / freq for every x < freq << 20
	freq  uint16 // 0: the symbol cannot be coded
	start uint16 // sum of the frequencies of smaller symbols
}

// decodeSymbolsGeneric decodes m symbols into dst[:m] with the 32 states and the words in src (two bytes a word; an
// odd last byte is never used). The states become the final ones. used is the number of bytes of words taken; ok is
// false where the words did not suffice, and then the rest of dst[:m] and the states are arbitrary. A table entry's
// frequency may be anything.
func decodeSymbolsGeneric(dst []byte, src []byte, states *[32]uint32, table *[4096]uint32, m int) (used int, ok bool) {
	dst = dst[:m]
	p := 0
	for len(dst) >= groupSyms && len(src)-p >= 2*groupSyms {
		p += decodeGroup((*[groupSyms]byte)(dst), (*[2 * groupSyms]byte)(src[p:]), states, table)
		dst = dst[groupSyms:]
	}
	for len(dst) > 0 {
		group := dst[:min(groupSyms, len(dst))]
		for j := 0; j < 4; j++ {
			for i := j; i < len(group); i += 4 {
				x := states[i/4]
				e := table[x%probTotal]
				x = (e>>20)*(x>>probBits) + e>>8&(probTotal-1)
				if x < lowerBound {
					if len(src)-p < 2 {
						return p, false
					}
					x = x<<16 | uint32(binary.LittleEndian.Uint16(src[p:]))
					p += 2
				}
				group[i] = byte(e)
				states[i/4] = x
			}
		}
		dst = dst[len(group):]
	}
	return p, true
}

// decodeGroup decodes a full group where src holds as many words as it could need. The renormalisation has no branch:
// which lanes need a word is close to random.
func decodeGroup(dst *[groupSyms]byte, src *[2 * groupSyms]byte, states *[32]uint32, table *[4096]uint32) int {
	p := uint(0)
	for j := 0; j < 4; j++ {
		for l := range states {
			x := states[l]
			e := table[x%probTotal]
			x = (e>>20)*(x>>probBits) + e>>8&(probTotal-1)
			w := uint32(binary.LittleEndian.Uint16(src[p&(2*groupSyms-2):]))
			need := uint32((uint64(x) - lowerBound) >> 63) // 1 where x < lowerBound
			p += uint(2 * need)
			states[l] = x<<(16*need) | w&-need
			dst[4*l+j] = byte(e)
		}
	}
	return int(p)
}

// encodeSymbolsGeneric codes syms with the 32 initial states, which become the final ones, and writes the words
// backwards, the last one ending at len(dst). start is the offset of the first. ok is false where a symbol has no
// frequency or dst is too short for the words; the content of dst and the states are then arbitrary.
func encodeSymbolsGeneric(dst []byte, syms []byte, states *[32]uint32, enc *[256]encEntry) (start int, ok bool) {
	p := len(dst)
	rest := len(syms) % groupSyms
	group := syms[len(syms)-rest:]
	for end := len(syms) - rest; ; end -= groupSyms {
		for j := 3; j >= 0; j-- {
			for l := (len(group)+3-j)/4 - 1; l >= 0; l-- {
				e := &enc[group[4*l+j]]
				x := states[l]
				if uint64(x) >= uint64(e.freq)<<20 {
					if p < 2 || e.freq == 0 {
						return p, false
					}
					p -= 2
					binary.LittleEndian.PutUint16(dst[p:], uint16(x))
					x >>= 16
				}
				q := uint32(uint64(x) * e.rcp >> rcpShift)
				states[l] = x + uint32(e.start) + q*(probTotal-uint32(e.freq))
			}
		}
		if end == 0 {
			return p, true
		}
		group = syms[end-groupSyms : end]
	}
}

// splitBF16Generic splits n = len(sm) BF16 units, n even, of src (2n bytes): the sign and mantissa of unit i go to
// sm[i], the indices of units 2i and 2i+1, exponent - base modulo 16, to the low and high half of syms[i]. Bit i mod 64
// of outside[i/64] is set where the exponent of unit i is not among base to base+15, and cleared otherwise, also beyond
// n in the last word used, ceil(n/64) words in all. any says whether one is set. base is at most 240.
func splitBF16Generic(syms, sm []byte, src []byte, base uint8, outside []uint64) (any bool) {
	n := len(sm)
	src, syms = src[:2*n], syms[:n/2]
	var seen uint64
	for w := 0; w*64 < n; w++ {
		lo, hi := w*64, min(w*64+64, n)
		var mask uint64
		for i := lo; i+1 < hi; i += 2 {
			v := binary.LittleEndian.Uint32(src[2*i : 2*i+4])
			a, b := v>>7&0xff-uint32(base), v>>23&0xff-uint32(base)
			sm[i] = byte(v&0x7f | v>>8&0x80)
			sm[i+1] = byte(v>>16&0x7f | v>>24&0x80)
			syms[i/2] = byte(a&15 | b<<4)
			if (a|b)&^15 != 0 {
				if a > 15 {
					mask |= 1 << (i % 64)
				}
				if b > 15 {
					mask |= 2 << (i % 64)
				}
			}
		}
		outside[w] = mask
		seen |= mask
	}
	return seen != 0
}

// mergeBF16Generic is the way back: it writes n = len(sm) units, n even, to dst (2n bytes) from n/2 pair symbols. base
// is at most 240.
func mergeBF16Generic(dst, syms, sm []byte, base uint8) {
	n := len(sm)
	dst, syms = dst[:2*n], syms[:n/2]
	both := uint32(base)<<7 | uint32(base)<<23
	for len(dst) >= 16 && len(sm) >= 8 && len(syms) >= 4 {
		s, t := binary.LittleEndian.Uint32(syms), binary.LittleEndian.Uint64(sm)
		binary.LittleEndian.PutUint64(dst, uint64(mergePair(s, uint32(t))+both)|uint64(mergePair(s>>8, uint32(t>>16))+both)<<32)
		binary.LittleEndian.PutUint64(dst[8:], uint64(mergePair(s>>16, uint32(t>>32))+both)|uint64(mergePair(s>>24, uint32(t>>48))+both)<<32)
		dst, syms, sm = dst[16:], syms[4:], sm[8:]
	}
	for i := 0; i+1 < len(sm); i += 2 {
		t := uint32(sm[i]) | uint32(sm[i+1])<<8
		binary.LittleEndian.PutUint32(dst[2*i:], mergePair(uint32(syms[i/2]), t)+both)
	}
}

// mergePair puts the two indices in the low byte of s and the two sign-mantissa bytes of t in place.
func mergePair(s, t uint32) uint32 {
	return s&15<<7 | s&0xf0<<19 | t&0x7f | t&0x80<<8 | t&0x7f00<<8 | t&0x8000<<16
}

// absentSymbolsGeneric sets bit i mod 64 of absent[i/64] where symbol i of syms is not present, and clears it
// otherwise, also beyond len(syms) in the last word used, ceil(len(syms)/64) words in all. any says whether one is set.
// Symbol s is present where bit s mod 8 of present[s/8] is set.
func absentSymbolsGeneric(absent []uint64, syms []byte, present *[32]byte) (any bool) {
	var seen uint64
	for w := 0; len(syms) > 0; w++ {
		part := syms[:min(64, len(syms))]
		syms = syms[len(part):]
		var mask uint64
		for i, s := range part {
			mask |= uint64(^present[s>>3]>>(s&7)&1) << i
		}
		absent[w] = mask
		seen |= mask
	}
	return seen != 0
}
