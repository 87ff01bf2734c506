package rans

import (
	"encoding/binary"
	"math/bits"
)

// layout says where the bits of a float unit go.
//
//	bit    size*8-1   ...        mant        ...          drop       0
//	       | sign | exponent (exp) | top bits | kept mantissa | dropped |
//
// The index, exponent - base, and the top bits make the symbol; the sign above the kept mantissa is the raw field;
// the dropped bits are zero in all units but the exceptions.
type layout struct {
	size   int  // bytes of a unit: 1, 2, 4 or 8
	exp    uint // width of the exponent
	mant   uint // width of the mantissa
	drop   uint // D
	top    uint // T: 0 means pairs
	base   uint64
	widths []uint8 // of the planes of the raw field, most significant first
}

func (l *layout) rawBits() uint { return 1 + l.mant - l.drop - l.top }

// setWidths makes widths from the other fields.
func (l *layout) setWidths() {
	r := l.rawBits()
	l.widths = nil
	if r >= 8 {
		l.widths = append(l.widths, 8)
		r -= 8
	}
	for r > 0 {
		w := uint(1) << (bits.Len(r) - 1)
		l.widths = append(l.widths, uint8(w))
		r -= w
	}
}

// maxBase is the highest base of a window that ends inside the exponent.
func maxBase(exp uint) uint64 { return 1<<exp - 16 }

// symbols is the number of symbols of a chunk of n units.
func (l *layout) symbols(n int) int {
	if l.top > 0 {
		return n
	}
	return (n + 1) / 2
}

// planeBytes is the length of plane k of a chunk of n units.
func (l *layout) planeBytes(n, k int) int { return (n*int(l.widths[k]) + 7) / 8 }

// isBF16 reports whether the specialised loops for whole BF16 units apply.
func (l *layout) isBF16() bool { return l.size == 2 && l.mant == 7 && l.drop == 0 && l.top == 0 }

// block is 64 units on their way between their own form and symbols and planes.
type block struct {
	raw [64]uint64
	sym [64]uint8
}

// split takes at most 64 units apart. Bit i of outside is set where unit i is an exception. Raw fields beyond the units
// are zero.
func (l *layout) split(b *block, src []byte) (outside uint64) {
	n := len(src) / l.size
	switch l.size {
	case 1:
		for i, x := range src {
			b.raw[i&63] = uint64(x)
		}
	case 2:
		for i := range n {
			b.raw[i&63] = uint64(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case 4:
		for i := range n {
			b.raw[i&63] = uint64(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case 8:
		for i := range n {
			b.raw[i&63] = binary.LittleEndian.Uint64(src[8*i:])
		}
	}
	clear(b.raw[n:])
	clear(b.sym[n:])
	kept, mant, sign, drop := (l.mant-l.drop-l.top)&63, l.mant&63, (l.exp+l.mant)&63, l.drop&63
	exps, tops, lows, keeps := uint64(1)<<l.exp-1, uint64(1)<<l.top-1, uint64(1)<<l.drop-1, uint64(1)<<kept-1
	topAt, base := (l.mant-l.top)&63, l.base
	for i, u := range b.raw[:n] {
		idx := u>>mant&exps - base
		b.sym[i&63] = uint8(idx&15 | u>>topAt&tops<<4)
		b.raw[i&63] = u>>sign<<kept | u>>drop&keeps
		bad := idx>>4 | u&lows
		outside |= (bad | -bad) >> 63 << (i & 63)
	}
	return outside
}

// merge puts units together, as many as dst holds, at most 64. It destroys the raw fields.
func (l *layout) merge(dst []byte, b *block) {
	kept, mant, sign, drop := (l.mant-l.drop-l.top)&63, l.mant&63, (l.exp+l.mant)&63, l.drop&63
	topAt, base, keeps := (l.mant-l.top)&63, l.base, uint64(1)<<kept-1
	for i, r := range &b.raw {
		s := uint64(b.sym[i&63])
		b.raw[i&63] = r>>kept<<sign | (s&15+base)<<mant | s>>4<<topAt | r&keeps<<drop
	}
	n := len(dst) / l.size
	switch l.size {
	case 1:
		for i := range dst {
			dst[i] = byte(b.raw[i&63])
		}
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(b.raw[i&63]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(b.raw[i&63]))
		}
	case 8:
		for i := range n {
			binary.LittleEndian.PutUint64(dst[8*i:], b.raw[i&63])
		}
	}
}

// pack writes w bits of every raw field, from bit shift up, to the 8*w bytes of dst.
func (b *block) pack(dst []byte, w, shift uint) {
	if w == 8 {
		dst = dst[:64]
		for i := range dst {
			dst[i] = byte(b.raw[i] >> (shift & 63))
		}
		return
	}
	mask := uint64(1)<<w - 1
	for k, per := 0, int(64/w); k < 64; k += per {
		var acc uint64
		for i := per - 1; i >= 0; i-- {
			acc = acc<<(w&63) | b.raw[(k+i)&63]>>(shift&63)&mask
		}
		binary.LittleEndian.PutUint64(dst, acc)
		dst = dst[8:]
	}
}

// unpack ors into every raw field, from bit shift up, its w bits in the 8*w bytes of src.
func (b *block) unpack(src []byte, w, shift uint) {
	if w == 8 {
		src = src[:64]
		for i, x := range src {
			b.raw[i] |= uint64(x) << (shift & 63)
		}
		return
	}
	mask := uint64(1)<<w - 1
	for k, per := 0, int(64/w); k < 64; k += per {
		acc := binary.LittleEndian.Uint64(src)
		for i := range per {
			b.raw[(k+i)&63] |= acc & mask << (shift & 63)
			acc >>= w & 63
		}
		src = src[8:]
	}
}
