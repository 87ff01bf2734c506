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

// encTable is what the encoder knows of all symbols. The bytes of freq | start << 12 stand in planes as well, lowest
// first, for kernels that look 64 symbols up at once.
type encTable struct {
	entries [256]encEntry
	planes  [3][256]byte
}

func (t *encTable) set(s byte, freq, start uint16) {
	t.entries[s] = encEntry{rcp: (1<<rcpShift + uint64(freq) - 1) / uint64(freq), freq: freq, start: start}
	for k := range t.planes {
		t.planes[k][s] = byte((uint32(freq) | uint32(start)<<12) >> (8 * k))
	}
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
func encodeSymbolsGeneric(dst []byte, syms []byte, states *[32]uint32, enc *encTable) (start int, ok bool) {
	p := len(dst)
	rest := len(syms) % groupSyms
	group := syms[len(syms)-rest:]
	for end := len(syms) - rest; ; end -= groupSyms {
		for j := 3; j >= 0; j-- {
			for l := (len(group)+3-j)/4 - 1; l >= 0; l-- {
				e := &enc.entries[group[4*l+j]]
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
		for end > 0 && p >= 2*groupSyms {
			used, ok := encodeGroup((*[2 * groupSyms]byte)(dst[p-2*groupSyms:]), (*[groupSyms]byte)(syms[end-groupSyms:]), states, &enc.entries)
			if !ok {
				return p, false
			}
			p -= used
			end -= groupSyms
		}
		if end == 0 {
			return p, true
		}
		group = syms[end-groupSyms : end]
	}
}

// encodeGroup codes a full group, with room for as many words as it could need at the end of dst, and returns the bytes
// written. Like decodeGroup it renormalises without a branch.
func encodeGroup(dst *[2 * groupSyms]byte, syms *[groupSyms]byte, states *[32]uint32, enc *[256]encEntry) (used int, ok bool) {
	p := uint(2*groupSyms - 2)
	least := uint16(1)
	for j := 3; j >= 0; j-- {
		for l := 31; l >= 0; l-- {
			e := &enc[syms[4*l+j]]
			x := states[l]
			least = min(least, e.freq)
			binary.LittleEndian.PutUint16(dst[p&(2*groupSyms-2):], uint16(x))
			full := uint32((uint64(e.freq)<<20 - 1 - uint64(x)) >> 63) // 1 where x >= freq << 20
			p -= uint(2 * full)
			x >>= 16 * full
			q := uint32(uint64(x) * e.rcp >> rcpShift)
			states[l] = x + uint32(e.start) + q*(probTotal-uint32(e.freq))
		}
	}
	return int(uint(2*groupSyms-2) - p), least != 0
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
		mask := uint64(0)
		i := lo
		for ; i+4 <= hi; i += 4 {
			// Four units in the 16-bit lanes of v; the window's distance is added so that no lane borrows.
			v := binary.LittleEndian.Uint64(src[2*i : 2*i+8])
			idx := (v>>7&(0xff*each16) + (256-uint64(base))*each16) & (0xff * each16)
			pairs := idx&(15*each16) | idx&(15*each16)>>12
			syms[i/2], syms[i/2+1] = byte(pairs), byte(pairs>>32)
			binary.LittleEndian.PutUint32(sm[i:i+4], pack16(v&(0x7f*each16)|v>>8&(0x80*each16)))
			if idx&(0xf0*each16) != 0 {
				for k := range 4 {
					if idx>>(16*k)&0xf0 != 0 {
						mask |= 1 << ((i + k) % 64)
					}
				}
			}
		}
		if i < hi {
			v := binary.LittleEndian.Uint32(src[2*i : 2*i+4])
			a, b := v>>7&0xff-uint32(base), v>>23&0xff-uint32(base)
			sm[i] = byte(v&0x7f | v>>8&0x80)
			sm[i+1] = byte(v>>16&0x7f | v>>24&0x80)
			syms[i/2] = byte(a&15 | b<<4)
			if a > 15 {
				mask |= 1 << (i % 64)
			}
			if b > 15 {
				mask |= 2 << (i % 64)
			}
		}
		outside[w] = mask
		seen |= mask
	}
	return seen != 0
}

// each16 multiplied by x has x in each of four lanes of 16 bits.
const each16 = 0x0001000100010001

// pack16 puts the low bytes of four lanes next to each other.
func pack16(v uint64) uint32 {
	v = (v | v>>8) & 0x0000ffff0000ffff
	return uint32(v | v>>16)
}

// unpack16 is the way back.
func unpack16(b uint32) uint64 {
	v := (uint64(b) | uint64(b)<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & (0xff * each16)
}

// unpair puts the four indices of two pair symbols into lanes.
func unpair(a, b byte) uint64 {
	v := uint64(a) | uint64(b)<<32
	return (v | v<<12) & (15 * each16)
}

// mergeBF16Generic is the way back: it writes n = len(sm) units, n even, to dst (2n bytes) from n/2 pair symbols. base
// is at most 240.
func mergeBF16Generic(dst, syms, sm []byte, base uint8) {
	n := len(sm)
	dst, syms = dst[:2*n], syms[:n/2]
	i := 0
	for ; i+4 <= n; i += 4 {
		e := unpair(syms[i/2], syms[i/2+1]) + uint64(base)*each16
		v := unpack16(binary.LittleEndian.Uint32(sm[i : i+4]))
		binary.LittleEndian.PutUint64(dst[2*i:2*i+8], e<<7|v&(0x7f*each16)|v&(0x80*each16)<<8)
	}
	if i < n {
		e := unpair(syms[i/2], 0) + uint64(base)*each16
		v := unpack16(uint32(sm[i]) | uint32(sm[i+1])<<8)
		binary.LittleEndian.PutUint32(dst[2*i:], uint32(e<<7|v&(0x7f*each16)|v&(0x80*each16)<<8))
	}
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
