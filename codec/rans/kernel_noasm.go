//go:build !amd64 || noasm

package rans

func decodeStream(s *stream, table *[4096]uint32) {
	s.at, s.ok = decodeSymbolsGeneric(s.dst, s.src, &s.states, table, len(s.dst))
}

func decodeStreams(a, b *stream, table *[4096]uint32) {
	decodeStream(a, table)
	decodeStream(b, table)
}

func encodeSymbols(dst []byte, syms []byte, states *[32]uint32, enc *encTable) (start int, ok bool) {
	return encodeSymbolsGeneric(dst, syms, states, enc)
}

func splitBF16(syms, sm []byte, src []byte, base uint8, outside []uint64) (any bool) {
	return splitBF16Generic(syms, sm, src, base, outside)
}

func mergeBF16(dst, syms, sm []byte, base uint8) {
	mergeBF16Generic(dst, syms, sm, base)
}

func absentSymbols(absent []uint64, syms []byte, present *[32]byte) (any bool) {
	return absentSymbolsGeneric(absent, syms, present)
}

func splitUnits(*layout, []byte, *[8][]byte, []byte, []uint64) (blocks int) { return 0 }

func mergeUnits(*layout, []byte, []byte, *[8][]byte) (blocks int) { return 0 }
