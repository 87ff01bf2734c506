package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func zload(m Mem) VecVirtual {
	z := ZMM()
	VMOVDQU64(m, z)
	return z
}

// zero breaks the dependency of a gather on what was in its destination before.
func zero(z VecVirtual) { emit("AVX512F", "VPXORD", nil, z, z, z) }

func mask(bits uint64) OpmaskVirtual {
	r, k := GP64(), K()
	MOVQ(U64(bits), r)
	KMOVQ(r, k)
	return k
}

// lane512 is what a loop keeps of one block: the next word, and the states of lanes 0 to 15 and 16 to 31.
type lane512 struct {
	src        GPVirtual
	dst, limit Mem
	x, acc     [2]VecVirtual
}

// decode512 decodes groups of n blocks of the same table, step by step in turns. A step waits for its gather and then
// for the words that renormalise it, so a second block is nearly free. The two halves of a block wait for each other only
// in the pointer to the next word.
func decode512(name string, n int) {
	sig, doc := "func(a *byte, table *[4096]uint32, groups int) int", " decodes groups whole groups of one stream"
	args := []string{"a", "b"}[:n]
	if n == 2 {
		sig, doc = "func(a, b *byte, table *[4096]uint32, groups int) int", " decodes groups whole groups of each of two streams"
	}
	TEXT(name, NOSPLIT, sig)
	Pragma("noescape")
	Doc(name+doc+". It returns how many are left, not 0 where a stream's",
		"next word lies beyond its limit.")
	table := argument("table")
	groups := argument("groups")
	slots := zload(dwords("slots", 4095))
	lower := zload(dwords("lower", 1<<16))
	ones := mask(0xffff)

	local := AllocLocal(16 * n)
	var s []lane512
	for i, arg := range args {
		p, t := argument(arg), GP64()
		b := lane512{src: GP64(), dst: local.Offset(16 * i), limit: local.Offset(16*i + 8)}
		MOVQ(base(p, offDst), t)
		MOVQ(t, b.dst)
		MOVQ(base(p, offSrc), t)
		MOVQ(t, b.src)
		ADDQ(base(p, offLimit), t)
		MOVQ(t, b.limit)
		ADDQ(base(p, offAt), b.src)
		for h := range b.x {
			b.x[h], b.acc[h] = zload(base(p, offStates+64*h)), ZMM()
		}
		s = append(s, b)
	}

	group, done := name+"_group", name+"_done"
	Label(group)
	for _, b := range s {
		CMPQ(b.src, b.limit)
		JHI(LabelRef(done))
	}
	for j := range 4 {
		for _, b := range s {
			for h := range b.x {
				decodeStep512(b.x[h], b.acc[h], b.src, table, slots, lower, ones, j == 0)
			}
		}
	}
	for i := range s {
		fetchAhead(fmt.Sprint(name, i), argument(args[i]))
	}
	// Four steps have pushed the four symbols of every lane into its double word, in order.
	for _, b := range s {
		dst := GP64()
		MOVQ(b.dst, dst)
		VMOVDQU64(b.acc[0], base(dst, 0))
		VMOVDQU64(b.acc[1], base(dst, 64))
		ADDQ(U32(128), b.dst)
	}
	DECQ(groups)
	JNZ(LabelRef(group))

	Label(done)
	for i, b := range s {
		p := argument(args[i])
		SUBQ(base(p, offSrc), b.src)
		MOVQ(b.src, base(p, offAt))
		for h := range b.x {
			VMOVDQU64(b.x[h], base(p, offStates+64*h))
		}
	}
	VZEROUPPER()
	Store(groups, ReturnIndex(0))
	RET()
}

// decodeStep512 takes one symbol from each of 16 lanes.
func decodeStep512(x, acc VecVirtual, src, table GPVirtual, slots, lower VecVirtual, ones OpmaskVirtual, first bool) {
	slot, e, todo := ZMM(), ZMM(), K()
	VPANDD(slots, x, slot)
	KMOVW(ones, todo)
	zero(e)
	VPGATHERDD(Mem{Base: table, Index: slot, Scale: 4}, todo, e)
	if first {
		VPSLLD(Imm(24), e, acc)
	} else {
		emit("AVX512_VBMI2", "VPSHRDD", []Op{e, acc}, Imm(8), e, acc, acc)
	}
	freq, k, w, n := ZMM(), K(), ZMM(), GP64()
	VPSRLD(Imm(12), x, x)
	VPSRLD(Imm(20), e, freq)
	VPSRLD(Imm(8), e, e)
	VPANDD(slots, e, e)
	VPMULLD(freq, x, x)
	VPADDD(e, x, x)
	VPCMPUD(Imm(1), lower, x, k) // x < lower
	VPMOVZXWD(base(src, 0), w)
	VPEXPANDD_Z(w, k, w)
	KMOVW(k, n.As32())
	POPCNTL(n.As32(), n.As32())
	LEAQ(Mem{Base: src, Index: n, Scale: 2}, src)
	VPSLLD(Imm(16), x, k, x)
	VPORD(w, x, x)
}

// encode512 codes groups backwards. A symbol's frequency and start are looked up 64 symbols at a time, in registers:
// their 24 bits are three tables of 256 bytes, each four vectors. The quotient comes from a float multiply with a
// reciprocal; every rounding goes down and the quotient is below 2^20, so it is exact or one too small, which the
// remainder tells.
func encode512() {
	TEXT("encodeAVX512", NOSPLIT, "func(s *byte, planes *[3][256]byte, groups int) int")
	Pragma("noescape")
	Doc("encodeAVX512 codes the last groups whole groups of symbols at the stream's source and writes their words below",
		"its position. It returns how many are left, not 0 where the position is below the limit.")
	s := argument("s")
	planes := argument("planes")
	groups := argument("groups")
	dst, at, syms := GP64(), GP64(), GP64()
	MOVQ(base(s, offDst), dst)
	MOVQ(base(s, offAt), at)
	MOVQ(groups, syms)
	SHLQ(Imm(7), syms)
	ADDQ(base(s, offSrc), syms)
	var x [2]VecVirtual
	for h := range x {
		x[h] = zload(base(s, offStates+64*h))
	}
	least := ZMM()
	emit("AVX512F", "VPTERNLOGD", nil, Imm(0xff), least, least, least)
	freqs := zload(dwords("freqs", 4095))
	total := zload(dwords("total", 4096))
	unit := zload(dwords("unit", 0x3f800000)) // 1.0
	lows := zload(wordTable("lows", 32, func(i int) int { return 2 * i }))
	lowTwo, third := mask(0x3333333333333333), mask(0x4444444444444444)
	var tables [6]VecVirtual
	for i := range tables {
		tables[i] = zload(base(planes, 128*i))
	}
	all := GP32()
	MOVL(U32(0xffffffff), all)

	Label("encode_group")
	CMPQ(at, base(s, offLimit))
	JL(LabelRef("encode_done"))
	SUBQ(U32(128), syms)
	var bytes [2][3]VecVirtual
	for h := range bytes {
		sym, upper := zload(base(syms, 64*h)), K()
		VPMOVB2M(sym, upper)
		for k := range bytes[h] {
			lo, hi := ZMM(), ZMM()
			VMOVDQA64(sym, lo)
			VMOVDQA64(sym, hi)
			VPERMI2B(base(planes, 256*k+64), tables[2*k], lo)
			VPERMI2B(base(planes, 256*k+192), tables[2*k+1], hi)
			VPBLENDMB(hi, lo, upper, lo)
			bytes[h][k] = lo
		}
	}
	for j := 3; j >= 0; j-- {
		var k [2]OpmaskVirtual
		var e [2]VecVirtual
		for h := range x {
			// Byte j of each double word of the three planes: frequency | start << 12.
			e[h] = zload(byteTable(fmt.Sprint("lowTwo", j), 64, func(i int) int { return i&^3 + j + i%2*64 }))
			VPERMI2B_Z(bytes[h][1], bytes[h][0], lowTwo, e[h])
			VPERMB(bytes[h][2], zload(byteTable(fmt.Sprint("third", j), 64, func(i int) int { return i&^3 + j })), third, e[h])
			bound := ZMM()
			k[h] = K()
			VPSLLD(Imm(20), e[h], bound)
			VPCMPUD(Imm(5), bound, x[h], k[h]) // x >= bound
			VPMINUD(bound, least, least)
		}
		both, w, n, keep := K(), ZMM(), GP64(), K()
		KUNPCKWD(k[0], k[1], both)
		VMOVDQA64(lows, w)
		VPERMI2W(x[1], x[0], w)
		emit("AVX512_VBMI2", "VPCOMPRESSW", []Op{w, both}, w, both, w)
		KMOVD(both, n.As32())
		POPCNTL(n.As32(), n.As32())
		m := GP32()
		BZHIL(n.As32(), all, m)
		KMOVD(m, keep)
		ADDQ(n, n)
		SUBQ(n, at)
		VMOVDQU16(w, keep, Mem{Base: dst, Index: at, Scale: 1})
		for h := range x {
			encodeStep512(x[h], e[h], k[h], freqs, total, unit)
		}
	}
	DECQ(groups)
	JNZ(LabelRef("encode_group"))

	Label("encode_done")
	MOVQ(at, base(s, offAt))
	for h := range x {
		VMOVDQU64(x[h], base(s, offStates+64*h))
	}
	none, r := K(), GP64()
	VPTESTNMD(least, least, none)
	KMOVW(none, r.As32())
	MOVQ(r, base(s, offAbsent))
	VZEROUPPER()
	Store(groups, ReturnIndex(0))
	RET()
}

// encodeStep512 shifts the lanes in k and puts a symbol into each: x = x/f << 12 + x%f + c, which is x + x/f * (4096 - f) + c.
func encodeStep512(x, e VecVirtual, k OpmaskVirtual, freqs, total, unit VecVirtual) {
	f, c, g, rcp, q, t := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	over := K()
	VPSRLD(Imm(16), x, k, x)
	VPANDD(freqs, e, f)
	VPSRLD(Imm(12), e, c)
	VPSUBD(f, total, g)
	VCVTDQ2PS(f, rcp)
	VDIVPS_RZ_SAE(rcp, unit, rcp)
	VCVTUDQ2PS_RZ_SAE(x, q)
	VMULPS_RZ_SAE(rcp, q, q)
	VCVTTPS2DQ(q, q)
	VPMULLD(g, q, t)
	VPADDD(t, x, x)
	VPSLLD(Imm(12), q, q)
	VPSUBD(q, x, q) // the remainder, or that and f
	VPCMPUD(Imm(5), f, q, over)
	VPADDD(c, x, x)
	VPADDD(g, x, over, x)
}
