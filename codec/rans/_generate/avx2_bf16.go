package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quarters is the immediate of VPERMQ that changes the middle quarters, so that what 128-bit halves unpack or pack by
// themselves comes out in order.
const quarters = 0xd8

// pick returns a where the mask is set, else b.
func pick(mask Op, a, b VecVirtual) VecVirtual {
	x, y := YMM(), YMM()
	VPAND(mask, a, x)
	VMOVDQU(mask.(Mem), y)
	VPANDN(b, y, y)
	VPOR(x, y, y)
	return y
}

func broadcastByte(name string) VecVirtual {
	x, y := XMM(), YMM()
	VMOVD(argument(name).As32(), x)
	VPBROADCASTB(x, y)
	return y
}

func mergeBF16x256() {
	TEXT("mergeBF16AVX2", NOSPLIT, "func(dst, syms, sm *byte, blocks int, base int)")
	Pragma("noescape")
	Doc("mergeBF16AVX2 puts blocks of 64 units together from 32 symbols each. base is an exponent.")
	dst, syms, sm := argument("dst"), argument("syms"), argument("sm")
	blocks := argument("blocks")
	first := broadcastByte("base")
	nibbles, tops := yload(dwords("nibbles", 0x0f0f0f0f)), dwords("tops", 0x80808080)

	Label("merge")
	lo, hi := YMM(), YMM()
	VPERMQ(Imm(quarters), base(syms, 0), lo)
	VPSRLD(Imm(4), lo, hi)
	VPAND(nibbles, hi, hi)
	VPAND(nibbles, lo, lo)
	VPADDB(first, hi, hi)
	VPADDB(first, lo, lo)
	for i := range 2 {
		e := YMM()
		if i == 0 {
			VPUNPCKLBW(hi, lo, e)
		} else {
			VPUNPCKHBW(hi, lo, e)
		}
		raw, last := yload(base(sm, 32*i)), YMM()
		VPSLLW(Imm(7), e, last)
		VPSRLW(Imm(1), e, e)
		low, high := pick(tops, last, raw), pick(tops, raw, e)
		a, b, c := YMM(), YMM(), YMM()
		VPUNPCKLBW(high, low, a)
		VPUNPCKHBW(high, low, b)
		VPERM2I128(Imm(0x20), b, a, c)
		VPERM2I128(Imm(0x31), b, a, a)
		VMOVDQU(c, base(dst, 64*i))
		VMOVDQU(a, base(dst, 64*i+32))
	}
	ADDQ(U32(32), syms)
	ADDQ(U32(64), sm)
	ADDQ(U32(128), dst)
	DECQ(blocks)
	JNZ(LabelRef("merge"))
	VZEROUPPER()
	RET()
}

// packWords makes bytes, in order, of words below 256.
func packWords(a, b VecVirtual) VecVirtual {
	y := YMM()
	VPACKUSWB(b, a, y)
	VPERMQ(Imm(quarters), y, y)
	return y
}

func splitBF16x256() {
	TEXT("splitBF16AVX2", NOSPLIT, "func(syms, sm, src *byte, blocks int, base int, outside *uint64) uint64")
	Pragma("noescape")
	Doc("splitBF16AVX2 takes blocks of 64 units apart and sets one word of outside for each. It returns all of these words",
		"ored.")
	syms, sm, src := argument("syms"), argument("sm"), argument("src")
	blocks, outside := argument("blocks"), argument("outside")
	first := broadcastByte("base")
	seen := GP64()
	XORQ(seen, seen)
	lowBytes := yload(wordTable("lowBytes", 16, func(int) int { return 0xff }))
	nibbles := yload(dwords("nibbles", 0x0f0f0f0f))
	tops, pair := dwords("tops", 0x80808080), dwords("pair", 0x10011001)

	Label("split")
	var halves [2]VecVirtual
	all := GP64()
	for i := range halves {
		var low, high, exp [2]VecVirtual
		for k := range low {
			a := yload(base(src, 64*i+32*k))
			low[k], high[k], exp[k] = YMM(), YMM(), YMM()
			VPAND(lowBytes, a, low[k])
			VPSRLW(Imm(8), a, high[k])
			VPSRLW(Imm(7), a, exp[k])
			VPAND(lowBytes, exp[k], exp[k])
		}
		raw := pick(tops, packWords(high[0], high[1]), packWords(low[0], low[1]))
		VMOVDQU(raw, base(sm, 32*i))
		e, inside, bits := packWords(exp[0], exp[1]), YMM(), GP64()
		VPSUBB(first, e, e)
		VPMINUB(nibbles, e, inside)
		VPCMPEQB(e, inside, inside)
		VPMOVMSKB(inside, bits.As32())
		NOTL(bits.As32())
		if i == 0 {
			MOVQ(bits, all)
		} else {
			SHLQ(Imm(32), bits)
			ORQ(bits, all)
		}
		VPAND(nibbles, e, e)
		VPMADDUBSW(pair, e, e)
		halves[i] = e
	}
	VMOVDQU(packWords(halves[0], halves[1]), base(syms, 0))
	MOVQ(all, base(outside, 0))
	ORQ(all, seen)
	ADDQ(U32(32), syms)
	ADDQ(U32(64), sm)
	ADDQ(U32(128), src)
	ADDQ(U32(8), outside)
	DECQ(blocks)
	JNZ(LabelRef("split"))
	VZEROUPPER()
	Store(seen, ReturnIndex(0))
	RET()
}

// absent256 looks a symbol's upper bits up in both halves of the bitmap and lets the topmost bit choose.
func absent256() {
	TEXT("absentAVX2", NOSPLIT, "func(absent *uint64, syms *byte, blocks int, present *[32]byte) uint64")
	Pragma("noescape")
	Doc("absentAVX2 sets one word of absent for each of blocks of 64 symbols. It returns all of these words ored.")
	absent, syms := argument("absent"), argument("syms")
	blocks, present := argument("blocks"), argument("present")
	front, back := YMM(), YMM()
	VBROADCASTI128(base(present, 0), front)
	VBROADCASTI128(base(present, 16), back)
	bit := yload(byteTable("bit", 32, func(i int) int { return 1 << (i % 8) }))
	nibbles := yload(dwords("nibbles", 0x0f0f0f0f))
	zeros := yzero()
	seen := GP64()
	XORQ(seen, seen)

	Label("absent")
	all := GP64()
	for i := range 2 {
		s, upper, a, b, bits := yload(base(syms, 32*i)), YMM(), YMM(), YMM(), GP64()
		VPSRLW(Imm(3), s, upper)
		VPAND(nibbles, upper, upper)
		VPSHUFB(upper, front, a)
		VPSHUFB(upper, back, b)
		VPBLENDVB(s, b, a, a)
		VPAND(nibbles, s, s)
		VPSHUFB(s, bit, s)
		VPAND(a, s, s)
		VPCMPEQB(zeros, s, s)
		VPMOVMSKB(s, bits.As32())
		if i == 0 {
			MOVQ(bits, all)
		} else {
			SHLQ(Imm(32), bits)
			ORQ(bits, all)
		}
	}
	MOVQ(all, base(absent, 0))
	ORQ(all, seen)
	ADDQ(U32(64), syms)
	ADDQ(U32(8), absent)
	DECQ(blocks)
	JNZ(LabelRef("absent"))
	VZEROUPPER()
	Store(seen, ReturnIndex(0))
	RET()
}
