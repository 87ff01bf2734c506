package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of rans.field and rans.unitRun; a test of the package compares them with the compiler's.
const (
	fieldAt    = 0
	fieldStep  = 8
	fieldShift = 16
	fieldClass = 24
	fieldSize  = 32

	runUnits   = 0
	runOutside = 8
	runTurns   = 16
	runPlanes  = 24
	runMant    = 32
	runTop     = 40
	runSign    = 48
	runDrop    = 56
	runBase    = 64
	runExps    = 68
	runTops    = 72
	runKept    = 76
	runGone    = 80
	runSyms    = 88
	runFirst   = runSyms + fieldSize
)

// lane says which instructions handle units that lie in lanes of 16 or of 32 bits.
type lane struct {
	bits                          int
	shiftL, shiftR, add, sub, set func(...Op)
	shiftEach, compare, test      func(...Op) // of AVX-512
}

var (
	lane16 = lane{16, VPSLLW, VPSRLW, VPADDW, VPSUBW, VPBROADCASTW, VPSRLVW, VPCMPUW, VPTESTMW}
	lane32 = lane{32, VPSLLD, VPSRLD, VPADDD, VPSUBD, VPBROADCASTD, VPSRLVD, VPCMPUD, VPTESTMD}
)

// everyUnit calls f for each size of units and the lanes that they are handled in.
func everyUnit(f func(size int, l lane)) {
	f(1, lane16)
	f(2, lane16)
	f(4, lane32)
}

func (l lane) datum(at, v int) {
	if l.bits == 16 {
		DATA(at, U16(v))
	} else {
		DATA(at, U32(v))
	}
}

func count(m Mem) VecVirtual {
	x := XMM()
	VMOVQ(m, x)
	return x
}

// shift is l.shiftL or l.shiftR by a count in memory.
func shift(op func(...Op), by Mem, a VecVirtual) VecVirtual {
	z := like(a)
	op(count(by), a, z)
	return z
}

// like returns a vector as long as a.
func like(a VecVirtual) VecVirtual {
	if a.Size() == 64 {
		return ZMM()
	}
	return YMM()
}

// table returns the operands of the tables of the class of the field at d: vectors of size bytes, four times size apart
// from class to class.
func table(tables GPVirtual, d Register, off, size int) func(k int) Op {
	class := GP64()
	MOVQ(base(d, off+fieldClass), class)
	SHLQ(Imm(uint64(map[int]int{32: 7, 64: 8}[size])), class)
	return func(k int) Op { return Mem{Base: tables, Index: class, Scale: 1, Disp: size * k} }
}

// advance returns where the field at d is, and moves it on.
func advance(d Register, off int) GPVirtual {
	p, t := GP64(), GP64()
	MOVQ(base(d, off+fieldAt), p)
	MOVQ(base(d, off+fieldStep), t)
	ADDQ(t, base(d, off+fieldAt))
	return p
}

// everyPlane makes the loop over the planes of a run, with the descriptor of each.
func everyPlane(name string, r Register, f func(d GPVirtual)) {
	d, planes := GP64(), GP64()
	LEAQ(base(r, runFirst), d)
	MOVQ(base(r, runPlanes), planes)
	Label(name)
	f(d)
	ADDQ(Imm(fieldSize), d)
	DECQ(planes)
	JNZ(LabelRef(name))
}
