//go:build !noasm

package rans

// Route names the instructions that the kernels use on this machine.
func (code) Route() string {
	switch best {
	case routeAVX512:
		return "AVX-512"
	case routeAVX2:
		return "AVX2"
	}
	return "generic"
}
