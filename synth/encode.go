package synth

import (
	"encoding/binary"
	"math"

	"github.com/wcodec/wcodec/tensor"
)

// bf16 rounds to BF16, ties to even. NaN stays NaN.
func bf16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7FFFFFFF > 0x7F800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

// small is a float type narrower than F32. What is below its normal range is rounded by an addition: magic is so large
// that the unit in its last place is the type's smallest number.
type small struct {
	mant   int    // stored mantissa bits
	bias   uint32 // of the exponent
	most   uint32 // bits of the largest finite number
	over   uint32 // bits that take the place of what is larger
	normal uint32 // F32 bits of the smallest normal number
	magic  float32
}

var (
	typeF16  = small{mant: 10, bias: 15, most: 0x7BFF, over: 0x7C00, normal: 113 << 23, magic: 0.5}
	typeE5M2 = small{mant: 2, bias: 15, most: 0x7B, over: 0x7C, normal: 113 << 23, magic: 128}
	typeE4M3 = small{mant: 3, bias: 7, most: 0x7E, over: 0x7E, normal: 121 << 23, magic: 16384}
)

// round rounds to the type, ties to even, and returns its bits without the sign; f is not NaN.
func (s *small) round(f float32) uint32 {
	b := math.Float32bits(f) & 0x7FFFFFFF
	if b < s.normal {
		return math.Float32bits(math.Float32frombits(b)+s.magic) - math.Float32bits(s.magic)
	}
	shift := 23 - s.mant
	r := (b+1<<(shift-1)-1+b>>shift&1)>>shift - (127-s.bias)<<s.mant
	if r > s.most {
		return s.over
	}
	return r
}

func f16(f float32) uint16 {
	return uint16(typeF16.round(f)) | uint16(math.Float32bits(f)>>16&0x8000)
}

func e4m3(f float32) byte {
	return byte(typeE4M3.round(f)) | byte(math.Float32bits(f)>>24&0x80)
}

func e5m2(f float32) byte {
	return byte(typeE5M2.round(f)) | byte(math.Float32bits(f)>>24&0x80)
}

// encodeF16 is f16 for each of v, with what most numbers need spelt out: a call would cost more.
func encodeF16(dst []byte, v []float32) {
	for i, f := range v {
		b := math.Float32bits(f)
		m := b & 0x7FFFFFFF
		r := (m+0xFFF+m>>13&1)>>13 - 112<<10
		if m-113<<23 >= 29<<23 {
			r = typeF16.round(f)
		}
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(r|b>>16&0x8000))
	}
}

// encodeE4M3 is e4m3 for each of v, likewise.
func encodeE4M3(dst []byte, v []float32) {
	dst = dst[:len(v)]
	for i, f := range v {
		b := math.Float32bits(f)
		m := b & 0x7FFFFFFF
		r := (m+0x7FFFF+m>>20&1)>>20 - 120<<3
		if m-121<<23 >= 14<<23 {
			r = typeE4M3.round(f)
		}
		dst[i] = byte(r | b>>24&0x80)
	}
}

// encode writes the numbers v to dst as elements of type d. C64 is pairs of F32, and the integers are rounded.
func encode(dst []byte, v []float32, d tensor.DType) {
	switch d {
	case tensor.BF16:
		for i, f := range v {
			binary.LittleEndian.PutUint16(dst[2*i:], bf16(f))
		}
	case tensor.F16:
		encodeF16(dst, v)
	case tensor.F32, tensor.C64:
		for i, f := range v {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(f))
		}
	case tensor.F64:
		for i, f := range v {
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(f)))
		}
	case tensor.F8E4M3:
		encodeE4M3(dst, v)
	case tensor.F8E5M2:
		for i, f := range v {
			dst[i] = e5m2(f)
		}
	case tensor.I8, tensor.U8, tensor.BOOL:
		const magic = 3 << 22 // the unit in the last place is 1, and negative numbers keep the exponent
		for i, f := range v {
			dst[i] = byte(math.Float32bits(f + magic))
		}
	}
}
