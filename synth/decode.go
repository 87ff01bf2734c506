package synth

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/wcodec/wcodec/tensor"
)

// value is the number of the type that has these bits, without the sign; inf says whether the highest exponent is
// kept for infinities and NaNs.
func (s *small) value(bits uint32, inf bool) float32 {
	exp, mant := bits>>s.mant, bits&(1<<s.mant-1)
	switch {
	case exp == 0:
		return float32(mant) * math.Float32frombits(s.normal-uint32(s.mant)<<23)
	case inf && bits >= s.over:
		return math.Float32frombits(0x7F800000 | mant<<(23-s.mant))
	case !inf && bits > s.most:
		return float32(math.NaN())
	}
	return math.Float32frombits((exp+127-s.bias)<<23 | mant<<(23-s.mant))
}

// bytes8 are the numbers of the 256 codes of an 8-bit type.
func bytes8(s *small, inf bool) *[256]float32 {
	v := new([256]float32)
	for i := range v {
		v[i] = s.value(uint32(i&0x7F), inf)
		if i >= 128 {
			v[i] = -v[i]
		}
	}
	return v
}

var (
	valuesE4M3 = sync.OnceValue(func() *[256]float32 { return bytes8(&typeE4M3, false) })
	valuesE5M2 = sync.OnceValue(func() *[256]float32 { return bytes8(&typeE5M2, true) })
)

// decode is the way back of encode, exact for every type but F64, which it does not know.
func decode(v []float32, b []byte, d tensor.DType) {
	switch d {
	case tensor.BF16:
		for i := range v {
			v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case tensor.F16:
		for i := range v {
			h := uint32(binary.LittleEndian.Uint16(b[2*i:]))
			v[i] = math.Float32frombits(math.Float32bits(typeF16.value(h&0x7FFF, true)) | h&0x8000<<16)
		}
	case tensor.F32:
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case tensor.F8E4M3:
		for i := range v {
			v[i] = valuesE4M3()[b[i]]
		}
	case tensor.F8E5M2:
		for i := range v {
			v[i] = valuesE5M2()[b[i]]
		}
	case tensor.I8:
		for i := range v {
			v[i] = float32(int8(b[i]))
		}
	}
}
