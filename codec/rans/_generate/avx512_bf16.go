package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// interleave is the index of a two-source byte permutation that takes bytes from on from both in turns.
func interleave(name string, from int) VecVirtual {
	return zload(byteTable(name, 64, func(i int) int { return from + i/2 + i%2*64 }))
}

// every is the index of a two-source byte permutation that takes every second byte.
func every(name string, from int) VecVirtual {
	return zload(byteTable(name, 64, func(i int) int { return 2*i + from }))
}

// permute2 is VPERMI2B with the index left alone.
func permute2(index, a, b VecVirtual) VecVirtual {
	z := ZMM()
	VMOVDQA64(index, z)
	VPERMI2B(b, a, z)
	return z
}

// pickTop is the immediate of VPTERNLOG(c, mask, a) that takes a where the mask is set, else c.
const pickTop = 0xe2

// mergeBF16x512 works on bytes: of exponent e and raw byte r, the low byte of a unit is e's last bit above r's low seven,
// and the high one r's top bit above the rest of e.
func mergeBF16x512() {
	TEXT("mergeBF16AVX512", NOSPLIT, "func(dst, syms, sm *byte, blocks int, base int)")
	Pragma("noescape")
	Doc("mergeBF16AVX512 puts blocks of 128 units together from 64 symbols each. base is an exponent.")
	dst, syms, sm := argument("dst"), argument("syms"), argument("sm")
	blocks := argument("blocks")
	first := ZMM()
	VPBROADCASTB(argument("base").As32(), first)
	nibbles := zload(dwords("nibbles", 0x0f0f0f0f))
	tops := zload(dwords("tops", 0x80808080))
	front, back := interleave("front", 0), interleave("back", 32)

	Label("merge")
	lo, hi := zload(base(syms, 0)), ZMM()
	VPSRLD(Imm(4), lo, hi)
	VPANDD(nibbles, hi, hi)
	VPANDD(nibbles, lo, lo)
	VPADDB(first, hi, hi)
	VPADDB(first, lo, lo)
	for i, index := range []VecVirtual{front, back} {
		e := permute2(index, lo, hi)
		low, high := ZMM(), zload(base(sm, 64*i))
		VPSLLW(Imm(7), e, low)
		VPSRLW(Imm(1), e, e)
		VPTERNLOGD(Imm(pickTop), high, tops, low)
		VPTERNLOGD(Imm(pickTop), e, tops, high)
		VMOVDQU64(permute2(front, low, high), base(dst, 128*i))
		VMOVDQU64(permute2(back, low, high), base(dst, 128*i+64))
	}
	ADDQ(U32(64), syms)
	ADDQ(U32(128), sm)
	ADDQ(U32(256), dst)
	DECQ(blocks)
	JNZ(LabelRef("merge"))
	VZEROUPPER()
	RET()
}

func splitBF16x512() {
	TEXT("splitBF16AVX512", NOSPLIT, "func(syms, sm, src *byte, blocks int, base int, outside *uint64) uint64")
	Pragma("noescape")
	Doc("splitBF16AVX512 takes blocks of 128 units apart and sets two words of outside for each. It returns all of these",
		"words ored.")
	syms, sm, src := argument("syms"), argument("sm"), argument("src")
	blocks, outside := argument("blocks"), argument("outside")
	first := ZMM()
	VPBROADCASTB(argument("base").As32(), first)
	nibbles := zload(dwords("nibbles", 0x0f0f0f0f))
	tops := zload(dwords("tops", 0x80808080))
	pair := zload(dwords("pair", 0x10011001))
	even, odd := every("even", 0), every("odd", 1)
	seen := GP64()
	XORQ(seen, seen)

	Label("split")
	var halves [2]VecVirtual
	for i := range halves {
		a, b := zload(base(src, 128*i)), zload(base(src, 128*i+64))
		raw, high := permute2(even, a, b), permute2(odd, a, b)
		VPADDW(a, a, a)
		VPADDW(b, b, b)
		e := permute2(odd, a, b)
		VPTERNLOGD(Imm(pickTop), raw, tops, high)
		VMOVDQU64(high, base(sm, 64*i))
		VPSUBB(first, e, e)
		k, bits := K(), GP64()
		VPCMPUB(Imm(6), nibbles, e, k) // e > 15
		KMOVQ(k, bits)
		MOVQ(bits, base(outside, 8*i))
		ORQ(bits, seen)
		VPANDD(nibbles, e, e)
		VPMADDUBSW(pair, e, e)
		halves[i] = e
	}
	VMOVDQU64(permute2(even, halves[0], halves[1]), base(syms, 0))
	ADDQ(U32(64), syms)
	ADDQ(U32(128), sm)
	ADDQ(U32(256), src)
	ADDQ(U32(16), outside)
	DECQ(blocks)
	JNZ(LabelRef("split"))
	VZEROUPPER()
	Store(seen, ReturnIndex(0))
	RET()
}

// absent512 finds a symbol's byte of the bitmap with its upper bits, and its bit with its lower ones. Both permutations
// look at six bits of every byte, and both tables repeat so that those which do not belong there do not matter.
func absent512() {
	TEXT("absentAVX512", NOSPLIT, "func(absent *uint64, syms *byte, blocks int, present *[32]byte) uint64")
	Pragma("noescape")
	Doc("absentAVX512 sets one word of absent for each of blocks of 64 symbols. It returns all of these words ored.")
	absent, syms := argument("absent"), argument("syms")
	blocks, present := argument("blocks"), argument("present")
	bitmap := ZMM()
	VBROADCASTI64X4(base(present, 0), bitmap)
	bit := zload(byteTable("bit", 64, func(i int) int { return 1 << (i % 8) }))
	seen := GP64()
	XORQ(seen, seen)

	Label("absent")
	s, upper := zload(base(syms, 0)), ZMM()
	VPSRLW(Imm(3), s, upper)
	VPERMB(bitmap, upper, upper)
	VPERMB(bit, s, s)
	k, bits := K(), GP64()
	VPTESTNMB(upper, s, k)
	KMOVQ(k, bits)
	MOVQ(bits, base(absent, 0))
	ORQ(bits, seen)
	ADDQ(U32(64), syms)
	ADDQ(U32(8), absent)
	DECQ(blocks)
	JNZ(LabelRef("absent"))
	VZEROUPPER()
	Store(seen, ReturnIndex(0))
	RET()
}
