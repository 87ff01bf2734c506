package codectest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/wcodec/wcodec/tensor"
)

// Units are all element types that package tensor knows, and one that it does not.
var Units = []tensor.DType{
	tensor.BF16, tensor.F16, tensor.F32, tensor.F64, tensor.F8E4M3, tensor.F8E5M2, tensor.F8E4M3FNUZ, tensor.F8E5M2FNUZ,
	tensor.F8E8M0, tensor.BOOL, tensor.U8, tensor.I8, tensor.U16, tensor.I16, tensor.U32, tensor.I32, tensor.U64, tensor.I64,
	tensor.F4, tensor.F6E2M3, tensor.F6E3M2, tensor.C64, "F3_E9",
}

// Size is the number of bytes of a unit of type unit.
func Size(unit tensor.DType) int {
	if b := unit.Bits(); b >= 8 && b%8 == 0 {
		return b / 8
	}
	return 1
}

// A content makes n units; the same ones each time.
type content struct {
	name string
	make func(unit tensor.DType, n int) []byte
}

var contents = []content{
	{"gaussian", Gaussian},
	{"random bytes", func(u tensor.DType, n int) []byte { return Random(n * Size(u)) }},
	{"zeros", func(u tensor.DType, n int) []byte { return make([]byte, n*Size(u)) }},
	{"constant", func(u tensor.DType, n int) []byte { return each(u, n, func(int) uint64 { return 0x3f8b7c6d5e4f3a2b }) }},
	{"every pattern", func(u tensor.DType, n int) []byte {
		return each(u, n, func(i int) uint64 { return uint64(i) * 0x1000100010001 })
	}},
	{"specials", func(u tensor.DType, n int) []byte {
		s := specials(u)
		return each(u, n, func(i int) uint64 { return s[i*7%len(s)] })
	}},
	{"rare specials", func(u tensor.DType, n int) []byte {
		b, s, size := Gaussian(u, n), specials(u), Size(u)
		for i := 5; i < n; i += 97 {
			put(b[i*size:], size, s[i%len(s)])
		}
		return b
	}},
	{"two wide groups", func(u tensor.DType, n int) []byte {
		b, size := Gaussian(u, n), Size(u)
		for i := 0; i < n; i += 3 {
			b[i*size+size-1] ^= 0x38
		}
		return b
	}},
	{"low bits zero", func(u tensor.DType, n int) []byte {
		b, size := Gaussian(u, n), Size(u)
		for i := range n {
			if i%50 != 7 {
				clear(b[i*size : i*size+size/2])
				b[i*size+size/2] &= 0xf8
			}
		}
		return b
	}},
	{"mostly zeros", func(u tensor.DType, n int) []byte {
		b, size := Gaussian(u, n), Size(u)
		for i := range n {
			if i%11 != 0 {
				clear(b[i*size : (i+1)*size])
			}
		}
		return b
	}},
	{"counter", func(u tensor.DType, n int) []byte { return each(u, n, func(i int) uint64 { return uint64(i) }) }},
	{"text", func(u tensor.DType, n int) []byte {
		const text = "the weights of the model are the weight of the world "
		b := make([]byte, n*Size(u))
		for i := range b {
			b[i] = text[(i+i/31)%len(text)]
		}
		return b
	}},
}

func put(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func each(u tensor.DType, n int, f func(i int) uint64) []byte {
	size := Size(u)
	b := make([]byte, n*size)
	for i := range n {
		put(b[i*size:], size, f(i))
	}
	return b
}

// Random makes n bytes without any order.
func Random(n int) []byte {
	r := rand.New(rand.NewPCG(31, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Gaussian makes n units of normal distribution: floats of deviation 0.02, truncated to their type; other types hold
// the integers next to a deviation of 25.
func Gaussian(u tensor.DType, n int) []byte {
	r := rand.New(rand.NewPCG(47, uint64(n)))
	f, float := u.Float()
	return each(u, n, func(int) uint64 {
		v := r.NormFloat64()
		if !float {
			return uint64(int64(math.Round(v * 25)))
		}
		return toFloat(v*0.02, f)
	})
}

// toFloat truncates a double to fields f; what is out of range becomes a zero or an infinity.
func toFloat(v float64, f tensor.FloatFields) uint64 {
	b := math.Float64bits(v)
	sign := b >> 63 << (f.Exp + f.Mant)
	e := int(b>>52&0x7ff) - 1023 + 1<<(f.Exp-1) - 1
	switch {
	case e <= 0:
		return sign
	case e >= 1<<f.Exp-1:
		return sign | (1<<f.Exp-1)<<f.Mant
	}
	return sign | uint64(e)<<f.Mant | b<<12>>(64-f.Mant)
}

// specials are the corners of a type: both zeros, the denormals at either end, the normals next to them, the largest
// finite values, infinities, NaNs with payloads, and the integers at the ends.
func specials(u tensor.DType) []uint64 {
	bits := uint(8 * Size(u))
	all := uint64(1)<<(bits-1)<<1 - 1
	out := []uint64{0, 1, all, all >> 1, all>>1 + 1, all - 1}
	f, ok := u.Float()
	if !ok {
		return out
	}
	sign := uint64(1) << (bits - 1)
	one := uint64(1) << f.Mant
	inf := (uint64(1)<<f.Exp - 1) << f.Mant
	for _, s := range []uint64{0, sign} {
		for _, v := range []uint64{0, 1, one - 1, one, one + 1, one << 3, inf - 1, inf, inf | 1, inf | one>>1, inf | one - 1, inf - one} {
			out = append(out, s|v)
		}
	}
	return out
}
