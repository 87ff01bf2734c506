package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of rans.stream; a test of the package compares them with the compiler's.
const (
	offDst    = 0  // of the slice's pointer
	offSrc    = 24 // of the slice's pointer
	offAt     = 48
	offLimit  = 56
	offAbsent = 64
	offStates = 72
	offAhead  = 200 // two spans of 16 bytes
)

// maxWords is the most bytes of words that a group of 128 symbols can take.
const maxWords = 256

var constants = map[string]Mem{}

// constant returns a read-only datum of size elements that fill makes, the same one for the same name.
func constant(name string, elems int, fill func(i int)) Mem {
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range elems {
			fill(i)
		}
		constants[name] = m
	}
	return m
}

func dwords(name string, v uint32) Mem {
	return constant(name, 16, func(i int) { DATA(4*i, U32(v)) })
}

func wordTable(name string, elems int, f func(i int) int) Mem {
	return constant(name, elems, func(i int) { DATA(2*i, U16(f(i))) })
}

func byteTable(name string, elems int, f func(i int) int) Mem {
	return constant(name, elems, func(i int) { DATA(i, U8(f(i))) })
}

// emit adds an instruction that avo does not know, or whose inputs it misjudges. The last operand is the destination.
func emit(isa, opcode string, inputs []Op, ops ...Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: ops, Inputs: inputs, Outputs: ops[len(ops)-1:], ISA: []string{isa}})
}

// argument loads an integer or pointer argument.
func argument(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// fetchAhead asks for the next cache lines of the spans of the stream at s.
func fetchAhead(name string, s Register) {
	for i := range 2 {
		off := offAhead + 16*i
		at, n := GP64(), GP64()
		loop := fmt.Sprint(name, "_ahead", i)
		MOVQ(base(s, off), at)
		MOVQ(base(s, off+8), n)
		TESTQ(n, n)
		JZ(LabelRef(loop + "_done"))
		Label(loop)
		for k := range 2 {
			if i == 0 {
				PREFETCHT0(base(at, 64*k))
			} else {
				PREFETCHT1(base(at, 64*k)) // of no use before this block is done, and the tables need the first level
			}
		}
		ADDQ(U32(128), at)
		DECQ(n)
		JNZ(LabelRef(loop))
		MOVQ(at, base(s, off))
		Label(loop + "_done")
	}
}

// base makes the operand at disp bytes from a pointer.
func base(p Register, disp int) Mem { return Mem{Base: p, Disp: disp} }
