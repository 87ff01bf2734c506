//go:build !noasm

package rans

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C _generate . -isa avx512 -out ../kernel_avx512_amd64.s -stubs ../stubs_avx512_amd64.go -pkg rans
//go:generate go run -C _generate . -isa avx2 -out ../kernel_avx2_amd64.s -stubs ../stubs_avx2_amd64.go -pkg rans

// A route is one implementation of the kernels.
type route int

const (
	routeGeneric route = iota
	routeAVX2
	routeAVX512
)

// best is the fastest route that this machine can take; tests set it to visit the others.
var best = detect()

func detect() route {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VBMI && x.HasAVX512VBMI2 &&
		x.HasPOPCNT && x.HasBMI2:
		return routeAVX512
	case x.HasAVX2 && x.HasFMA && x.HasPOPCNT:
		return routeAVX2
	}
	return routeGeneric
}

// pointer is how a kernel takes its stream.
func (s *stream) pointer() *byte { return (*byte)(unsafe.Pointer(s)) }

// groupBytes is the most bytes of words that a group of symbols takes or makes. A decoding kernel reads no further than
// that beyond where a group begins.
const groupBytes = 2 * groupSyms

// begin sets how far a kernel may go, and returns how many groups there are.
func (s *stream) begin() int {
	s.at, s.limit = 0, min(len(s.src)&^1, cap(s.src)-groupBytes)
	return len(s.dst) / groupSyms
}

// decodeStream decodes the symbols of s. It sets s.at to the bytes of words that they took, and s.ok to whether there
// were enough.
func decodeStream(s *stream, table *[4096]uint32) {
	s.resume(table, s.begin())
}

// decodeStreams decodes two streams of one table.
func decodeStreams(a, b *stream, table *[4096]uint32) {
	restA, restB := a.begin(), b.begin()
	if both := min(restA, restB); best == routeAVX512 && both > 0 && a.limit >= 0 && b.limit >= 0 {
		done := both - decode2AVX512(a.pointer(), b.pointer(), table, both)
		restA, restB = restA-done, restB-done
	}
	a.resume(table, restA)
	b.resume(table, restB)
}

// resume decodes the last rest groups and the symbols after them: by a kernel as far as that goes, by the generic loop
// from there on.
func (s *stream) resume(table *[4096]uint32, rest int) {
	groups, dst := len(s.dst)/groupSyms, s.dst
	if rest > 0 && s.limit >= 0 {
		s.dst = dst[(groups-rest)*groupSyms:]
		switch best {
		case routeAVX512:
			rest = decode1AVX512(s.pointer(), table, rest)
		case routeAVX2:
			rest = decodeAVX2(s.pointer(), table, rest)
		}
		s.dst = dst
	}
	if s.ok = s.at <= len(s.src); s.ok {
		var used int
		dst = dst[(groups-rest)*groupSyms:]
		used, s.ok = decodeSymbolsGeneric(dst, s.src[s.at:], &s.states, table, len(dst))
		s.at += used
	}
}

// encodeSymbols leaves the last symbols, short of a group, and what has too little room for a kernel, to the generic
// loop.
func encodeSymbols(dst []byte, syms []byte, states *[32]uint32, enc *encTable) (start int, ok bool) {
	groups := len(syms) / groupSyms
	if best == routeGeneric || groups == 0 {
		return encodeSymbolsGeneric(dst, syms, states, enc)
	}
	start, ok = encodeSymbolsGeneric(dst, syms[groups*groupSyms:], states, enc)
	if !ok {
		return start, false
	}
	s := stream{dst: dst, src: syms, at: start, limit: groupBytes, states: *states}
	if best == routeAVX512 {
		groups = encodeAVX512(s.pointer(), &enc.planes, groups)
	} else {
		groups = encodeAVX2(s.pointer(), (*byte)(unsafe.Pointer(&enc.entries)), groups)
	}
	*states = s.states
	if s.absent != 0 || groups == 0 {
		return s.at, s.absent == 0
	}
	return encodeSymbolsGeneric(dst[:s.at], syms[:groups*groupSyms], states, enc)
}

// splitBF16 splits whole blocks by a kernel and the rest by the generic loop.
func splitBF16(syms, sm []byte, src []byte, base uint8, outside []uint64) (any bool) {
	done, seen := 0, uint64(0)
	switch n := len(sm); {
	case best == routeAVX512 && n >= 128:
		done = n &^ 127
		seen = splitBF16AVX512(&syms[:done/2][0], &sm[0], &src[:2*done][0], done/128, int(base), &outside[:done/64][0])
	case best == routeAVX2 && n >= 64:
		done = n &^ 63
		seen = splitBF16AVX2(&syms[:done/2][0], &sm[0], &src[:2*done][0], done/64, int(base), &outside[:done/64][0])
	}
	rest := splitBF16Generic(syms[done/2:], sm[done:], src[2*done:], base, outside[done/64:])
	return rest || seen != 0
}

// mergeBF16 merges whole blocks by a kernel and the rest by the generic loop.
func mergeBF16(dst, syms, sm []byte, base uint8) {
	done := 0
	switch n := len(sm); {
	case best == routeAVX512 && n >= 128:
		done = n &^ 127
		mergeBF16AVX512(&dst[:2*done][0], &syms[:done/2][0], &sm[0], done/128, int(base))
	case best == routeAVX2 && n >= 64:
		done = n &^ 63
		mergeBF16AVX2(&dst[:2*done][0], &syms[:done/2][0], &sm[0], done/64, int(base))
	}
	mergeBF16Generic(dst[2*done:], syms[done/2:], sm[done:], base)
}

// absentSymbols looks at whole blocks of 64 by a kernel and at the rest by the generic loop.
func absentSymbols(absent []uint64, syms []byte, present *[32]byte) (any bool) {
	blocks, seen := len(syms)/64, uint64(0)
	switch {
	case best == routeGeneric || blocks == 0:
		blocks = 0
	case best == routeAVX512:
		seen = absentAVX512(&absent[:blocks][0], &syms[0], blocks, present)
	default:
		seen = absentAVX2(&absent[:blocks][0], &syms[0], blocks, present)
	}
	rest := absentSymbolsGeneric(absent[blocks:], syms[64*blocks:], present)
	return rest || seen != 0
}
