package rans

import "encoding/binary"

// path is a faster way than layout.split and layout.merge to take whole blocks of 64 units apart and put them
// together, several units to a word. planes are those of the chunk, padded or not, and as long as the blocks need.
type path struct {
	split func(l *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64)
	merge func(l *layout, dst, syms []byte, planes *[8][]byte)
}

// pathOf returns the path of a layout, empty where there is none.
func pathOf(l *layout) path {
	switch {
	case l.top > 0:
	case l.size == 2 && l.rawBits() >= 8 && l.rawBits() <= 11:
		return path{split16, merge16}
	case l.size == 4 && l.mant == 23 && (l.drop == 0 || l.drop == 16):
		return path{split32, merge32}
	case l.size == 1 && l.exp == 4 && l.mant == 3 && l.drop == 0:
		return path{splitE4M3, mergeE4M3}
	case l.size == 1 && l.exp == 5 && l.mant == 2 && l.drop == 0:
		return path{splitE5M2, mergeE5M2}
	}
	return path{}
}

// split16 is for two-byte floats whose raw field has 8 bits, and then up to 3 more in planes of 2 and 1.
func split16(l *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64) {
	exps := uint64(1<<l.exp-1) * each16
	turn := (1<<l.exp - l.base) * each16 // what makes exponent - base without a borrow, modulo 2^exp
	far := exps &^ (15 * each16)
	low := uint64(1<<l.drop-1) * each16
	mant, more := l.mant, l.rawBits()-8
	first, second, third := planes[0], planes[1], planes[2]
	for w := range outside {
		in, out := src[128*w:128*w+128], syms[32*w:32*w+32]
		sm := first[64*w : 64*w+64]
		var ones, mask uint64
		for i := range 16 {
			v := binary.LittleEndian.Uint64(in[8*i:])
			idx := (v>>(mant&15)&exps + turn) & exps
			pairs := idx&(15*each16) | idx&(15*each16)>>12
			out[2*i], out[2*i+1] = byte(pairs), byte(pairs>>32)
			binary.LittleEndian.PutUint32(sm[4*i:], pack16(v>>8&(0x80*each16)|v>>((mant-7)&15)&(0x7f*each16)))
			if more >= 2 {
				t := v >> ((mant - 9) & 15) & (3 * each16)
				second[16*w+i] = byte(t | t>>14 | t>>28 | t>>42)
			}
			if more&1 == 1 {
				t := v >> (l.drop & 15) & each16
				ones |= (t | t>>15 | t>>30 | t>>45) & 15 << (4 * i)
			}
			if bad := idx&far | v&low; bad != 0 {
				for k := range 4 {
					if bad>>(16*k)&0xffff != 0 {
						mask |= 1 << (4*i + k)
					}
				}
			}
		}
		switch more {
		case 1:
			binary.LittleEndian.PutUint64(second[8*w:], ones)
		case 3:
			binary.LittleEndian.PutUint64(third[8*w:], ones)
		}
		outside[w] = mask
	}
}

func merge16(l *layout, dst, syms []byte, planes *[8][]byte) {
	base := l.base * each16
	mant, more := l.mant, l.rawBits()-8
	first, second, third := planes[0], planes[1], planes[2]
	for w := range len(dst) / 128 {
		out, in := dst[128*w:128*w+128], syms[32*w:32*w+32]
		sm := first[64*w : 64*w+64]
		var ones uint64
		switch more {
		case 1:
			ones = binary.LittleEndian.Uint64(second[8*w:])
		case 3:
			ones = binary.LittleEndian.Uint64(third[8*w:])
		}
		for i := range 16 {
			v := unpack16(binary.LittleEndian.Uint32(sm[4*i:]))
			u := (unpair(in[2*i], in[2*i+1])+base)<<(mant&15) | v&(0x80*each16)<<8 | v&(0x7f*each16)<<((mant-7)&15)
			if more >= 2 {
				t := uint64(second[16*w+i])
				u |= (t | t<<14 | t<<28 | t<<42) & (3 * each16) << ((mant - 9) & 15)
			}
			if more&1 == 1 {
				t := ones >> (4 * i) & 15
				u |= (t | t<<15 | t<<30 | t<<45) & each16 << (l.drop & 15)
			}
			binary.LittleEndian.PutUint64(out[8*i:], u)
		}
	}
}

// split32 is for F32 with the whole mantissa, or with the upper 7 bits of it.
func split32(l *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64) {
	base, drop := uint32(l.base), uint32(1<<l.drop-1)
	first, second := planes[0], planes[1]
	for w := range outside {
		in, out := src[256*w:256*w+256], syms[32*w:32*w+32]
		sm := first[64*w : 64*w+64]
		var mask uint64
		for i := range 32 {
			v := binary.LittleEndian.Uint64(in[8*i:])
			a, b := uint32(v), uint32(v>>32)
			x, y := a>>23&0xff-base, b>>23&0xff-base
			out[i] = byte(x&15 | y<<4)
			sm[2*i] = byte(a>>24&0x80 | a>>16&0x7f)
			sm[2*i+1] = byte(b>>24&0x80 | b>>16&0x7f)
			if drop == 0 {
				binary.LittleEndian.PutUint32(second[128*w+4*i:], a&0xffff|b<<16)
			}
			if (x|y)&^15|(a|b)&drop != 0 {
				if x > 15 || a&drop != 0 {
					mask |= 1 << (2 * i)
				}
				if y > 15 || b&drop != 0 {
					mask |= 2 << (2 * i)
				}
			}
		}
		outside[w] = mask
	}
}

func merge32(l *layout, dst, syms []byte, planes *[8][]byte) {
	base, all := l.base<<23|l.base<<55, l.drop == 0
	first, second := planes[0], planes[1]
	for w := range len(dst) / 256 {
		out, in := dst[256*w:256*w+256], syms[32*w:32*w+32]
		sm := first[64*w : 64*w+64]
		for i := range 32 {
			s, a, b := uint64(in[i]), uint64(sm[2*i]), uint64(sm[2*i+1])
			u := s&15<<23 + s>>4<<55 + base | a&0x7f<<16 | a&0x80<<24 | b&0x7f<<48 | b&0x80<<56
			if all {
				t := uint64(binary.LittleEndian.Uint32(second[128*w+4*i:]))
				u |= t&0xffff | t>>16<<32
			}
			binary.LittleEndian.PutUint64(out[8*i:], u)
		}
	}
}

// each8 multiplied by x has x in each of eight bytes.
const each8 = 0x0101010101010101

// nibbles puts the low halves of eight bytes next to each other; unnibble is the way back.
func nibbles(v uint64) uint32 { return pack16((v | v>>4) & (0xff * each16)) }

func unnibble(b uint32) uint64 {
	v := unpack16(b)
	return (v | v<<4) & (15 * each8)
}

// splitE4M3 has no exceptions: the window is the whole exponent.
func splitE4M3(_ *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64) {
	first := planes[0][:32*len(outside)]
	syms, src = syms[:len(first)], src[:2*len(first)]
	for i := 0; i < len(first); i += 4 {
		v := binary.LittleEndian.Uint64(src[2*i:])
		binary.LittleEndian.PutUint32(syms[i:], nibbles(v>>3&(15*each8)))
		binary.LittleEndian.PutUint32(first[i:], nibbles(v>>4&(8*each8)|v&(7*each8)))
	}
	clear(outside)
}

func mergeE4M3(_ *layout, dst, syms []byte, planes *[8][]byte) {
	n := len(dst) / 64 * 32
	first, syms, dst := planes[0][:n], syms[:n], dst[:2*n]
	for i := 0; i < n; i += 4 {
		e, v := unnibble(binary.LittleEndian.Uint32(syms[i:])), unnibble(binary.LittleEndian.Uint32(first[i:]))
		binary.LittleEndian.PutUint64(dst[2*i:], e<<3|v&(8*each8)<<4|v&(7*each8))
	}
}

func splitE5M2(l *layout, syms []byte, planes *[8][]byte, src []byte, outside []uint64) {
	turn := (32 - l.base) * each8
	first, second := planes[0], planes[1]
	for w := range outside {
		var mask uint64
		for i := range 8 {
			v := binary.LittleEndian.Uint64(src[64*w+8*i:])
			idx := (v>>2&(31*each8) + turn) & (31 * each8)
			binary.LittleEndian.PutUint32(syms[32*w+4*i:], nibbles(idx&(15*each8)))
			t := v>>6&(2*each8) | v>>1&each8
			t = (t | t>>6 | t>>12 | t>>18) & 0xff000000ff
			binary.LittleEndian.PutUint16(first[16*w+2*i:], uint16(t|t>>24))
			second[8*w+i] = lowBits(v)
			mask |= uint64(lowBits(idx>>4)) << (8 * i)
		}
		outside[w] = mask
	}
}

// lowBits collects the lowest bit of each byte: byte i gives bit i.
func lowBits(v uint64) byte { return byte(v & each8 * 0x0102040810204080 >> 56) }

func mergeE5M2(l *layout, dst, syms []byte, planes *[8][]byte) {
	base := l.base * each8
	first, second := planes[0], planes[1]
	for i := range len(dst) / 64 * 8 {
		e := unnibble(binary.LittleEndian.Uint32(syms[4*i:])) + base
		t := uint64(binary.LittleEndian.Uint16(first[2*i:]))
		t = t&0xff | t>>8<<32
		t = (t | t<<6 | t<<12 | t<<18) & (3 * each8)
		m := (uint64(second[i])*each8&0x8040201008040201 + 0x7f*each8) >> 7 & each8
		binary.LittleEndian.PutUint64(dst[8*i:], e<<2|t&(2*each8)<<6|t&each8<<1|m)
	}
}
