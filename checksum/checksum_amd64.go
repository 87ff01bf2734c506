//go:build !noasm

package checksum

import "golang.org/x/sys/cpu"

//go:generate go run -C _generate . -out ../checksum_amd64.s -stubs ../stubs_amd64.go -pkg checksum

// A route is one implementation of accumulate.
type route int

const (
	routeGeneric route = iota
	routeAVX2
	routeAVX512
)

// best is the fastest route that this machine can take; tests set it to visit the others.
var best = detect()

func detect() route {
	switch {
	case cpu.X86.HasAVX512F:
		return routeAVX512
	case cpu.X86.HasAVX2:
		return routeAVX2
	}
	return routeGeneric
}

// avx2Rows is how many rows the AVX2 form takes at a time: 16 KiB, which it reads four times.
const avx2Rows = 32

// accumulate adds the rows of b, whole ones, to acc.
func accumulate(acc *[columns]uint64, b []byte) {
	rows := len(b) / rowBytes
	switch {
	case rows == 0:
	case best == routeAVX512:
		accumulateAVX512(acc, &b[0], rows, &keys[0])
	case best == routeAVX2:
		for g := 0; g < rows; g += avx2Rows {
			accumulateAVX2(acc, &b[g*rowBytes], min(avx2Rows, rows-g), &keys[g])
		}
	default:
		accumulateGeneric(acc, b)
	}
}
