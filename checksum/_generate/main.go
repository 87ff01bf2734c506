// Command _generate writes the vector forms of checksum.accumulate: checksum_amd64.s and its Go stubs.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const rowBytes = 512

func main() {
	ConstraintExpr("!noasm")
	avx512()
	avx2()
	Generate()
}

// avx512 keeps all 128 columns in registers: the multiply takes the low word of each 64-bit lane, so a vector of 16
// words feeds one accumulator of its even columns and, shifted down, one of its odd ones. The columns are put in order
// on the way in and out.
func avx512() {
	TEXT("accumulateAVX512", NOSPLIT, "func(acc *[128]uint64, b *byte, rows int, keys *uint64)")
	Pragma("noescape")
	Doc("accumulateAVX512 adds rows whole rows at b to acc; keys is the key of the first.")
	acc := Load(Param("acc"), GP64())
	b := Load(Param("b"), GP64())
	rows := Load(Param("rows"), GP64())
	keys := Load(Param("keys"), GP64())

	evens, odds := ZMM(), ZMM()
	VMOVDQU64(index("pick", 0, 2), evens)
	VMOVDQU64(index("pick", 1, 2), odds)
	var even, odd [8]VecVirtual
	for i := range even {
		even[i], odd[i] = ZMM(), ZMM()
		lo, hi := Mem{Base: acc, Disp: 128 * i}, Mem{Base: acc, Disp: 128*i + 64}
		VMOVDQU64(lo, even[i])
		VMOVDQA64(even[i], odd[i])
		VPERMT2Q(hi, evens, even[i])
		VPERMT2Q(hi, odds, odd[i])
	}

	Label("row512")
	key := ZMM()
	VPBROADCASTQ(Mem{Base: keys}, key)
	for i := range even {
		w, p, q := ZMM(), ZMM(), ZMM()
		VMOVDQU64(Mem{Base: b, Disp: 64 * i}, w)
		VPMULUDQ(w, key, p)
		VPSRLQ(Imm(32), w, q)
		VPMULUDQ(q, key, q)
		VPADDQ(p, even[i], even[i])
		VPADDQ(q, odd[i], odd[i])
	}
	ADDQ(U32(rowBytes), b)
	ADDQ(Imm(8), keys)
	DECQ(rows)
	JNZ(LabelRef("row512"))

	low, high := ZMM(), ZMM()
	VMOVDQU64(index("low", 0, 0), low)
	VMOVDQU64(index("high", 4, 0), high)
	for i := range even {
		t := ZMM()
		VMOVDQA64(even[i], t)
		VPERMT2Q(odd[i], low, t)
		VMOVDQU64(t, Mem{Base: acc, Disp: 128 * i})
		VPERMT2Q(odd[i], high, even[i])
		VMOVDQU64(even[i], Mem{Base: acc, Disp: 128*i + 64})
	}
	VZEROUPPER()
	RET()
}

// index makes the operand of a two-source permutation. With step 2 it picks every second lane of both sources; with
// step 0 it interleaves the sources, from lane first.
func index(name string, first, step int) Mem {
	m := GLOBL(name+suffix(first), RODATA|NOPTR)
	for i := range 8 {
		v := first + step*i
		if step == 0 {
			v = first + i/2 + i%2*8
		}
		DATA(8*i, U64(v))
	}
	return m
}

func suffix(first int) string { return string(rune('0' + first)) }

// avx2 has room for 32 columns at a time and goes over the rows four times; its caller keeps the rows few enough for
// them to stay in the nearest cache.
func avx2() {
	TEXT("accumulateAVX2", NOSPLIT, "func(acc *[128]uint64, b *byte, rows int, keys *uint64)")
	Pragma("noescape")
	Doc("accumulateAVX2 adds rows whole rows at b to acc; keys is the key of the first.")
	acc := Load(Param("acc"), GP64())
	b := Load(Param("b"), GP64())
	rows := Load(Param("rows"), GP64())
	keys := Load(Param("keys"), GP64())
	blocks := GP64()
	MOVQ(U32(4), blocks)

	Label("block")
	at, k, n := GP64(), GP64(), GP64()
	MOVQ(b, at)
	MOVQ(keys, k)
	MOVQ(rows, n)
	var even, odd [4]VecVirtual
	for i := range even {
		even[i], odd[i] = YMM(), YMM()
		VPXOR(even[i], even[i], even[i])
		VPXOR(odd[i], odd[i], odd[i])
	}

	Label("row2")
	key := YMM()
	VPBROADCASTQ(Mem{Base: k}, key)
	for i := range even {
		w, p, q := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: at, Disp: 32 * i}, w)
		VPMULUDQ(w, key, p)
		VPSRLQ(Imm(32), w, q)
		VPMULUDQ(q, key, q)
		VPADDQ(p, even[i], even[i])
		VPADDQ(q, odd[i], odd[i])
	}
	ADDQ(U32(rowBytes), at)
	ADDQ(Imm(8), k)
	DECQ(n)
	JNZ(LabelRef("row2"))

	for i := range even {
		// Within 128 bits: columns 0 2 | 4 6 and 1 3 | 5 7 become 0 1 | 4 5 and 2 3 | 6 7, and then halves change places.
		lo, hi, t := YMM(), YMM(), YMM()
		VPUNPCKLQDQ(odd[i], even[i], lo)
		VPUNPCKHQDQ(odd[i], even[i], hi)
		VPERM2I128(Imm(0x20), hi, lo, t)
		VPADDQ(Mem{Base: acc, Disp: 64 * i}, t, t)
		VMOVDQU(t, Mem{Base: acc, Disp: 64 * i})
		VPERM2I128(Imm(0x31), hi, lo, t)
		VPADDQ(Mem{Base: acc, Disp: 64*i + 32}, t, t)
		VMOVDQU(t, Mem{Base: acc, Disp: 64*i + 32})
	}
	ADDQ(U32(256), acc)
	ADDQ(Imm(128), b)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
