package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func yload(m Mem) VecVirtual {
	y := YMM()
	VMOVDQU(m, y)
	return y
}

func yones() VecVirtual {
	y := YMM()
	emit("AVX2", "VPCMPEQD", nil, y, y, y)
	return y
}

func yzero() VecVirtual {
	y := YMM()
	VPXOR(y, y, y)
	return y
}

// spread holds, for each set of 8 lanes, the shuffle that deals consecutive words to the lanes of the set, and zeros to
// the others.
func spread() Mem {
	return byteTable("spread", 256*16, func(i int) int {
		set, lane, next := i/16, i%16/2, 0
		if set>>lane&1 == 0 {
			return 0x80
		}
		for l := range lane {
			next += 2 * (set >> l & 1)
		}
		return next + i%2
	})
}

// collect holds, for each set of 8 lanes, the shuffle that moves the words of its lanes, in order, to the top.
func collect() Mem {
	return byteTable("collect", 256*16, func(i int) int {
		set, below := i/16, 8-i%16/2 // this is the below-th word from the top
		for l := 7; l >= 0; l-- {
			if below -= set >> l & 1; below == 0 && set>>l&1 == 1 {
				return 2*l + i%2
			}
		}
		return 0x80
	})
}

func decode256() {
	TEXT("decodeAVX2", NOSPLIT, "func(s *byte, table *[4096]uint32, groups int) int")
	Pragma("noescape")
	Doc("decodeAVX2 decodes groups whole groups of a stream. It returns how many are left, not 0 where the next word lies",
		"beyond the limit.")
	s := argument("s")
	table := argument("table")
	groups := argument("groups")
	dst, src, limit, deal := GP64(), GP64(), GP64(), GP64()
	MOVQ(base(s, offDst), dst)
	MOVQ(base(s, offSrc), src)
	MOVQ(src, limit)
	ADDQ(base(s, offLimit), limit)
	ADDQ(base(s, offAt), src)
	LEAQ(spread(), deal)
	var x, acc [4]VecVirtual
	for i := range x {
		x[i], acc[i] = yload(base(s, offStates+32*i)), YMM()
	}
	slots := yload(dwords("slots", 4095))
	sixteen := dwords("sixteen", 16)

	Label("decode_group")
	CMPQ(src, limit)
	JHI(LabelRef("decode_done"))
	for j := range 4 {
		for i := range x {
			slot, todo, e := YMM(), yones(), yzero()
			VPAND(slots, x[i], slot)
			VPGATHERDD(todo, Mem{Base: table, Index: slot, Scale: 4}, e)
			freq, t := YMM(), YMM()
			if j == 0 {
				VPSLLD(Imm(24), e, acc[i])
			} else {
				VPSRLD(Imm(8), acc[i], acc[i])
				VPSLLD(Imm(24), e, t)
				VPOR(t, acc[i], acc[i])
			}
			VPSRLD(Imm(12), x[i], x[i])
			VPSRLD(Imm(20), e, freq)
			VPSRLD(Imm(8), e, e)
			VPAND(slots, e, e)
			VPMULLD(freq, x[i], x[i])
			VPADDD(e, x[i], x[i])

			low, k, n, w := YMM(), GP64(), GP64(), YMM()
			VPSRLD(Imm(16), x[i], low)
			VPCMPEQD(yzero(), low, low)
			VMOVMSKPS(low, k.As32())
			POPCNTL(k.As32(), n.As32())
			SHLL(Imm(4), k.As32())
			VMOVDQU(base(src, 0), w.AsX())
			VPSHUFB(Mem{Base: deal, Index: k, Scale: 1}, w.AsX(), w.AsX())
			VPMOVZXWD(w.AsX(), w)
			LEAQ(Mem{Base: src, Index: n, Scale: 2}, src)
			VPAND(sixteen, low, low)
			VPSLLVD(low, x[i], x[i])
			VPOR(w, x[i], x[i])
		}
	}
	for i := range acc {
		VMOVDQU(acc[i], base(dst, 32*i))
	}
	fetchAhead("decode", argument("s"))
	ADDQ(U32(128), dst)
	DECQ(groups)
	JNZ(LabelRef("decode_group"))

	Label("decode_done")
	Load(Param("s"), s)
	SUBQ(base(s, offSrc), src)
	MOVQ(src, base(s, offAt))
	for i := range x {
		VMOVDQU(x[i], base(s, offStates+32*i))
	}
	VZEROUPPER()
	Store(groups, ReturnIndex(0))
	RET()
}

// encode256 differs from the AVX-512 form where there are no unsigned conversion and no choice of rounding: a state is
// converted in halves, and the reciprocal is made smaller by more than all roundings can add.
func encode256() {
	TEXT("encodeAVX2", NOSPLIT, "func(s *byte, entries *byte, groups int) int")
	Pragma("noescape")
	Doc("encodeAVX2 codes the last groups whole groups of symbols at the stream's source and writes their words below its",
		"position. It returns how many are left, not 0 where the position is below the limit.")
	s := argument("s")
	entries := argument("entries")
	groups := argument("groups")
	at, limit, syms, fold := GP64(), GP64(), GP64(), GP64()
	MOVQ(base(s, offDst), at)
	MOVQ(at, limit)
	ADDQ(base(s, offLimit), limit)
	ADDQ(base(s, offAt), at)
	MOVQ(groups, syms)
	SHLQ(Imm(7), syms)
	ADDQ(base(s, offSrc), syms)
	LEAQ(collect(), fold)
	var x [4]VecVirtual
	for i := range x {
		x[i] = yload(base(s, offStates+32*i))
	}
	least := yones()
	lowWords := yload(byteTable("lowWords", 32, func(i int) int {
		if i%16 >= 8 {
			return 0x80
		}
		return i%16/2*4 + i%2
	}))
	freqs, total := dwords("freqs", 4095), dwords("total", 4096)
	shrink := dwords("shrink", math.Float32bits(1-1.0/(1<<22)))
	high := dwords("high", math.Float32bits(65536))

	Label("encode_group")
	CMPQ(at, limit)
	JLO(LabelRef("encode_done"))
	SUBQ(U32(128), syms)
	for j := 3; j >= 0; j-- {
		for i := 3; i >= 0; i-- {
			// Entries are 16 bytes, with frequency | start << 16 at 8; indices count half entries.
			index, e, todo := yload(base(syms, 32*i)), yzero(), yones()
			if j == 0 {
				VPSLLD(Imm(1), index, index)
			} else {
				VPSRLD(Imm(uint64(8*j-1)), index, index)
			}
			VPAND(dwords("halves", 0x1fe), index, index)
			VPGATHERDD(todo, Mem{Base: entries, Index: index, Scale: 8, Disp: 8}, e)
			bound, shift, k, n, w := YMM(), YMM(), GP64(), GP64(), YMM()
			VPSLLD(Imm(20), e, bound)
			VPMINUD(bound, least, least)
			VPMAXUD(bound, x[i], shift)
			VPCMPEQD(shift, x[i], shift) // x >= bound
			VMOVMSKPS(shift, k.As32())
			POPCNTL(k.As32(), n.As32())
			SHLL(Imm(4), k.As32())
			VPSHUFB(lowWords, x[i], w)
			VPERMQ(Imm(8), w, w)
			VPSHUFB(Mem{Base: fold, Index: k, Scale: 1}, w.AsX(), w.AsX())
			VMOVDQU(w.AsX(), base(at, -16))
			ADDQ(n, n)
			SUBQ(n, at)
			VPAND(dwords("sixteen", 16), shift, shift)
			VPSRLVD(shift, x[i], x[i])

			f, g, rcp, q, t := YMM(), YMM(), YMM(), YMM(), YMM()
			VPAND(freqs, e, f)
			VPSRLD(Imm(16), e, e)
			VCVTDQ2PS(f, rcp)
			VMOVDQU(shrink, t)
			VDIVPS(rcp, t, rcp)
			VPSRLD(Imm(16), x[i], t)
			VCVTDQ2PS(t, t)
			VPBLENDW(Imm(0x55), x[i], yzero(), q)
			VCVTDQ2PS(q, q)
			VFMADD231PS(high, t, q)
			VMULPS(rcp, q, q)
			VCVTTPS2DQ(q, q)
			VMOVDQU(total, g)
			VPSUBD(f, g, g)
			VPMULLD(g, q, t)
			VPADDD(t, x[i], x[i])
			VPSLLD(Imm(12), q, q)
			VPSUBD(q, x[i], q) // the remainder, or that and f
			VPCMPGTD(q, f, f)
			VPANDN(g, f, g)
			VPADDD(e, x[i], x[i])
			VPADDD(g, x[i], x[i])
		}
	}
	DECQ(groups)
	JNZ(LabelRef("encode_group"))

	Label("encode_done")
	Load(Param("s"), s)
	SUBQ(base(s, offDst), at)
	MOVQ(at, base(s, offAt))
	for i := range x {
		VMOVDQU(x[i], base(s, offStates+32*i))
	}
	none := GP64()
	VPCMPEQD(yzero(), least, least)
	VMOVMSKPS(least, none.As32())
	MOVQ(none, base(s, offAbsent))
	VZEROUPPER()
	Store(groups, ReturnIndex(0))
	RET()
}
