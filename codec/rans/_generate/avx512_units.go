package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// zeach returns an operand with v in every lane.
func (l lane) zeach(name string, v uint32) Mem {
	if l.bits == 16 {
		v |= v << 16
	}
	return dwords(fmt.Sprint(name, l.bits), v)
}

func (l lane) zset(m Mem) VecVirtual {
	z := ZMM()
	l.set(m, z)
	return z
}

// ztables holds three vectors for every class of width, the logarithm of the width w, from 1 to 16: the index of a byte
// permutation that brings to each lane the bytes that hold its field of w bits, the shifts that bring the fields down,
// and a mask of w bits.
func (l lane) ztables() Mem {
	bytes := l.bits / 8
	return constant(fmt.Sprint("fields", l.bits), 5, func(class int) {
		w, at := 1<<class, 256*class
		for i := range 64 {
			DATA(at+i, U8(i/bytes*w/8+i%bytes))
		}
		for i := range 64 / bytes {
			l.datum(at+64+i*bytes, i*w%8)
		}
		for i := range 64 / bytes {
			l.datum(at+128+i*bytes, 1<<w-1)
		}
	})
}

// zunpack brings the values of the field at d into lanes. It reads 64 bytes. of is what table returns.
func (l lane) zunpack(d Register, off int, of func(k int) Op) VecVirtual {
	z := ZMM()
	index := of(0)
	if m, ok := index.(Mem); ok {
		index = zload(m)
	}
	VPERMB(base(advance(d, off), 0), index, z)
	l.shiftEach(of(1), z, z)
	VPANDD(of(2), z, z)
	return z
}

// andOr is the immediate of VPTERNLOG(c, b, a) that makes a & b | c.
const andOr = 0xea

// mergeUnits512 puts units of size bytes together out of a field of symbols and the fields of the planes.
func mergeUnits512(size int, l lane) {
	name := fmt.Sprint("mergeUnits", size)
	TEXT(name+"AVX512", NOSPLIT, "func(r *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%sAVX512 puts %d units of size %d together in each turn of a unitRun. It may read 63 bytes beyond a",
		name, 512/l.bits, size), "field.")
	r := argument("r")
	tables, units := GP64(), GP64()
	LEAQ(l.ztables(), tables)
	MOVQ(base(r, runUnits), units)
	mant, tops, drop, up := count(base(r, runMant)), count(base(r, runTop)), count(base(r, runDrop)), count(base(r, runSign))
	first, kept := l.zset(base(r, runBase)), l.zset(base(r, runKept))
	l.shiftL(drop, kept, kept)
	var syms [3]VecVirtual
	for k, of := 0, table(tables, r, runSyms, 64); k < 3; k++ {
		syms[k] = zload(of(k).(Mem))
	}
	nibble := zload(l.zeach("nibble", 15))
	sign := zload(l.zeach(fmt.Sprintf("sign%d_", size), 1<<(8*size-1)))

	Label(name)
	u, top := l.zunpack(r, runSyms, func(k int) Op { return syms[k] }), ZMM()
	l.shiftR(Imm(4), u, top)
	l.shiftL(tops, top, top)
	VPANDD(nibble, u, u)
	l.add(first, u, u)
	l.shiftL(mant, u, u)
	VPORD(top, u, u)

	raw := ZMM()
	zero(raw)
	everyPlane(name+"plane", r, func(d GPVirtual) {
		VPORD(shift(l.shiftL, base(d, fieldShift), l.zunpack(d, 0, table(tables, d, 0, 64))), raw, raw)
	})
	low, high := ZMM(), ZMM()
	l.shiftL(drop, raw, low)
	l.shiftL(up, raw, high)
	VPTERNLOGD(Imm(andOr), u, kept, low)
	VPTERNLOGD(Imm(andOr), low, sign, high)
	if size == 1 {
		VPMOVWB(high, base(units, 0))
		ADDQ(Imm(32), units)
	} else {
		VMOVDQU64(high, base(units, 0))
		ADDQ(Imm(64), units)
	}
	DECQ(base(r, runTurns))
	JNZ(LabelRef(name))
	VZEROUPPER()
	RET()
}

// splitUnits512 is the way back.
func splitUnits512(size int, l lane) {
	name := fmt.Sprint("splitUnits", size)
	TEXT(name+"AVX512", NOSPLIT, "func(r *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%sAVX512 takes %d units of size %d apart in each turn of a unitRun.", name, 512/l.bits, size))
	r := argument("r")
	tables, units, outside := GP64(), GP64(), GP64()
	LEAQ(l.ztables(), tables)
	MOVQ(base(r, runUnits), units)
	MOVQ(base(r, runOutside), outside)
	first, exps, tops := l.zset(base(r, runBase)), l.zset(base(r, runExps)), l.zset(base(r, runTops))
	kept, gone, sign := l.zset(base(r, runKept)), l.zset(base(r, runGone)), ZMM()
	l.sub(zload(l.zeach("minus", 1<<l.bits-1)), kept, sign) // the sign stands above the kept bits
	nibble := zload(l.zeach("nibble", 15))
	mant, topAt, drop, down := count(base(r, runMant)), count(base(r, runTop)), count(base(r, runDrop)), count(base(r, runSign))

	Label(name)
	u, e, s, raw, high := ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	if size == 1 {
		VPMOVZXBW(base(units, 0), u)
		ADDQ(Imm(32), units)
	} else {
		VMOVDQU64(base(units, 0), u)
		ADDQ(Imm(64), units)
	}
	far, dropped, bits := K(), K(), GP32()
	l.shiftR(mant, u, e)
	VPANDD(exps, e, e)
	l.sub(first, e, e)
	l.compare(Imm(6), nibble, e, far) // e > 15
	l.test(gone, u, dropped)
	KORD(far, dropped, far)
	KMOVD(far, bits)
	if l.bits == 16 {
		MOVL(bits, base(outside, 0))
		ADDQ(Imm(4), outside)
	} else {
		MOVW(bits.As16(), base(outside, 0))
		ADDQ(Imm(2), outside)
	}

	l.shiftR(topAt, u, s)
	VPANDD(tops, s, s)
	l.shiftL(Imm(4), s, s)
	VPTERNLOGD(Imm(andOr), s, nibble, e)
	l.zpack(name+"syms", r, runSyms, e)

	l.shiftR(drop, u, raw)
	l.shiftR(down, u, high)
	VPANDD(sign, high, high)
	VPTERNLOGD(Imm(andOr), high, kept, raw)
	everyPlane(name+"plane", r, func(d GPVirtual) {
		f := shift(l.shiftR, base(d, fieldShift), raw)
		VPANDD(table(tables, d, 0, 64)(2), f, f)
		l.zpack(name+"plane", d, 0, f)
	})
	DECQ(base(r, runTurns))
	JNZ(LabelRef(name))
	VZEROUPPER()
	RET()
}

// zpack writes the values in lanes as the field at d. Two neighbours become one by multiplying the second with a power of
// two and adding the first, as often as a byte has room for them.
func (l lane) zpack(name string, d Register, off int, z VecVirtual) {
	pair4, pair2 := dwords("pair4", 0x00100001), dwords("pair2", 0x00040001)
	class, p, y := GP64(), advance(d, off), YMM()
	MOVQ(base(d, off+fieldClass), class)
	branch := func(c int, f func()) {
		other := fmt.Sprint(name, "not", c)
		CMPQ(class, Imm(uint64(c)))
		JNE(LabelRef(other))
		f()
		JMP(LabelRef(name + "done"))
		Label(other)
	}
	if l.bits == 16 {
		branch(3, func() { VPMOVWB(z, base(p, 0)) })
		branch(2, func() {
			VPMADDWD(pair4, z, z)
			VPMOVDB(z, base(p, 0))
		})
		branch(1, func() {
			VPMADDWD(pair2, z, z)
			VPMOVDW(z, y)
			VPMADDWD(pair4, y, y)
			VPMOVDB(y, base(p, 0))
		})
	} else {
		branch(3, func() { VPMOVDB(z, base(p, 0)) })
		branch(4, func() { VPMOVDW(z, base(p, 0)) })
		branch(2, func() {
			VPMOVDW(z, y)
			VPMADDWD(pair4, y, y)
			VPMOVDB(y, base(p, 0))
		})
		branch(1, func() {
			VPMOVDW(z, y)
			VPMADDWD(pair2, y, y)
			VPMOVDW(y, y.AsX())
			VPMADDWD(pair4, y.AsX(), y.AsX())
			VPMOVDB(y.AsX(), base(p, 0))
		})
	}
	k, bits := K(), GP32()
	l.test(z, z, k)
	KMOVD(k, bits)
	if l.bits == 16 {
		MOVL(bits, base(p, 0))
	} else {
		MOVW(bits.As16(), base(p, 0))
	}
	Label(name + "done")
}
