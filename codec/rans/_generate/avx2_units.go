package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// yeach returns an operand with v in every lane.
func (l lane) yeach(name string, v uint32) Mem {
	if l.bits == 16 {
		v |= v << 16
	}
	return dwords(fmt.Sprint(name, l.bits), v)
}

func (l lane) yset(m Mem) VecVirtual {
	y := YMM()
	l.set(m, y)
	return y
}

// ytables is what ztables is, for vectors of 32 bytes. Where lanes have 16 bits there is no shift of each by its own
// count; a multiplication moves the fields up to bit 8 instead.
func (l lane) ytables() Mem {
	bytes := l.bits / 8
	return constant(fmt.Sprint("fields", l.bits), 5, func(class int) {
		w, at := 1<<class, 128*class
		for i := range 32 {
			v := i/bytes*w/8 + i%bytes
			if i%bytes > 0 && w <= 8 {
				v = 0x80
			}
			DATA(at+i, U8(v))
		}
		for i := range 32 / bytes {
			if l.bits == 16 {
				DATA(at+32+2*i, U16(1<<(8-i*w%8)))
			} else {
				DATA(at+32+4*i, U32(i*w%8))
			}
		}
		for i := range 32 / bytes {
			l.datum(at+64+i*bytes, 1<<w-1)
		}
	})
}

// yunpack brings the values of the field at d into lanes. It reads 16 bytes.
func (l lane) yunpack(d Register, off int, tables GPVirtual) VecVirtual {
	y := YMM()
	VBROADCASTI128(base(advance(d, off), 0), y)
	of := table(tables, d, off, 32)
	VPSHUFB(of(0), y, y)
	if l.bits == 16 {
		VPMULLW(of(1), y, y)
		VPSRLW(Imm(8), y, y)
	} else {
		VPSRLVD(of(1), y, y)
	}
	VPAND(of(2), y, y)
	return y
}

func mergeUnits256(size int, l lane) {
	name := fmt.Sprint("mergeUnits", size)
	TEXT(name+"AVX2", NOSPLIT, "func(r *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%sAVX2 puts %d units of size %d together in each turn of a unitRun. It may read 15 bytes beyond a field.",
		name, 256/l.bits, size))
	r := argument("r")
	tables, units := GP64(), GP64()
	LEAQ(l.ytables(), tables)
	MOVQ(base(r, runUnits), units)
	first, kept := l.yset(base(r, runBase)), l.yset(base(r, runKept))
	l.shiftL(count(base(r, runDrop)), kept, kept)
	nibble := yload(l.yeach("nibble", 15))
	sign := yload(l.yeach(fmt.Sprintf("sign%d_", size), 1<<(8*size-1)))

	Label(name)
	u := l.yunpack(r, runSyms, tables)
	top := YMM()
	l.shiftR(Imm(4), u, top)
	top = shift(l.shiftL, base(r, runTop), top)
	VPAND(nibble, u, u)
	l.add(first, u, u)
	u = shift(l.shiftL, base(r, runMant), u)
	VPOR(top, u, u)

	raw := YMM()
	VPXOR(raw, raw, raw)
	everyPlane(name+"plane", r, func(d GPVirtual) {
		VPOR(shift(l.shiftL, base(d, fieldShift), l.yunpack(d, 0, tables)), raw, raw)
	})
	low, high := shift(l.shiftL, base(r, runDrop), raw), shift(l.shiftL, base(r, runSign), raw)
	VPAND(kept, low, low)
	VPAND(sign, high, high)
	VPOR(low, u, u)
	VPOR(high, u, u)
	if size == 1 {
		VMOVDQU(bytesOfWords(u).AsX(), base(units, 0))
		ADDQ(Imm(16), units)
	} else {
		VMOVDQU(u, base(units, 0))
		ADDQ(Imm(32), units)
	}
	DECQ(base(r, runTurns))
	JNZ(LabelRef(name))
	VZEROUPPER()
	RET()
}

// bytesOfWords packs 16 words below 256 into the low half of a vector.
func bytesOfWords(words VecVirtual) VecVirtual {
	y := YMM()
	VPACKUSWB(words, words, y)
	VPERMQ(Imm(8), y, y)
	return y
}

func splitUnits256(size int, l lane) {
	name := fmt.Sprint("splitUnits", size)
	TEXT(name+"AVX2", NOSPLIT, "func(r *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%sAVX2 takes %d units of size %d apart in each turn of a unitRun.", name, 256/l.bits, size))
	r := argument("r")
	tables, units, outside := GP64(), GP64(), GP64()
	LEAQ(l.ytables(), tables)
	MOVQ(base(r, runUnits), units)
	MOVQ(base(r, runOutside), outside)
	first, exps, tops := l.yset(base(r, runBase)), l.yset(base(r, runExps)), l.yset(base(r, runTops))
	kept, gone, sign := l.yset(base(r, runKept)), l.yset(base(r, runGone)), YMM()
	l.sub(l.yeach("minus", 1<<l.bits-1), kept, sign) // the sign stands above the kept bits
	nibble := yload(l.yeach("nibble", 15))

	Label(name)
	u := YMM()
	if size == 1 {
		VPMOVZXBW(base(units, 0), u)
		ADDQ(Imm(16), units)
	} else {
		VMOVDQU(base(units, 0), u)
		ADDQ(Imm(32), units)
	}
	e, far, t, bits := shift(l.shiftR, base(r, runMant), u), YMM(), YMM(), GP32()
	VPAND(exps, e, e)
	l.sub(first, e, e)
	VPANDN(e, nibble, far)
	VPAND(gone, u, t)
	VPOR(t, far, far)
	if l.bits == 16 {
		VPCMPEQW(yzero(), far, far)
		VPACKSSWB(far, far, far)
		VPERMQ(Imm(8), far, far)
		VPMOVMSKB(far.AsX(), bits)
		NOTL(bits)
		MOVW(bits.As16(), base(outside, 0))
		ADDQ(Imm(2), outside)
	} else {
		VPCMPEQD(yzero(), far, far)
		VMOVMSKPS(far, bits)
		NOTL(bits)
		MOVB(bits.As8(), base(outside, 0))
		INCQ(outside)
	}

	s := shift(l.shiftR, base(r, runTop), u)
	VPAND(tops, s, s)
	l.shiftL(Imm(4), s, s)
	VPAND(nibble, e, e)
	VPOR(s, e, e)
	l.ypack(name+"syms", r, runSyms, e)

	raw, high := shift(l.shiftR, base(r, runDrop), u), shift(l.shiftR, base(r, runSign), u)
	VPAND(sign, high, high)
	VPAND(kept, raw, raw)
	VPOR(high, raw, raw)
	everyPlane(name+"plane", r, func(d GPVirtual) {
		f := shift(l.shiftR, base(d, fieldShift), raw)
		VPAND(table(tables, d, 0, 32)(2), f, f)
		l.ypack(name+"plane", d, 0, f)
	})
	DECQ(base(r, runTurns))
	JNZ(LabelRef(name))
	VZEROUPPER()
	RET()
}

// ypack writes the values in lanes as the field at d: as bytes first, of which two neighbours become one by multiplying
// the second with a power of two and adding the first, as often as a byte has room for them.
func (l lane) ypack(name string, d Register, off int, y VecVirtual) {
	class, p := GP64(), advance(d, off)
	MOVQ(base(d, off+fieldClass), class)
	branch := func(c int, f func()) {
		other := fmt.Sprint(name, "not", c)
		CMPQ(class, Imm(uint64(c)))
		JNE(LabelRef(other))
		f()
		JMP(LabelRef(name + "done"))
		Label(other)
	}
	// A store beyond the field would destroy what belongs there, so each has the size of what it stores.
	store := func(x Op, bytes int) {
		switch bytes {
		case 16:
			VMOVDQU(x, base(p, 0))
		case 8:
			VMOVQ(x, base(p, 0))
		case 4:
			VMOVD(x, base(p, 0))
		case 2:
			VPEXTRW(Imm(0), x, base(p, 0))
		}
	}
	v, n := YMM(), 256/l.bits
	x := v.AsX()
	if l.bits == 16 {
		VPACKUSWB(y, y, v)
		VPERMQ(Imm(8), v, v)
	} else {
		VPACKUSDW(y, y, v)
		VPERMQ(Imm(8), v, v)
		branch(4, func() { store(x, 16) })
		VPACKUSWB(x, x, x)
	}
	pair4, pair2 := dwords("bytePair4", 0x10011001), dwords("bytePair2", 0x04010401)
	branch(3, func() { store(x, n) })
	branch(2, func() {
		VPMADDUBSW(pair4, x, x)
		VPACKUSWB(x, x, x)
		store(x, n/2)
	})
	branch(1, func() {
		VPMADDUBSW(pair2, x, x)
		VPACKUSWB(x, x, x)
		VPMADDUBSW(pair4, x, x)
		VPACKUSWB(x, x, x)
		store(x, n/4)
	})
	bits := GP32()
	VPSLLW(Imm(7), x, x)
	VPMOVMSKB(x, bits)
	if n == 16 {
		MOVW(bits.As16(), base(p, 0))
	} else {
		MOVB(bits.As8(), base(p, 0))
	}
	Label(name + "done")
}
