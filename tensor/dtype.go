package tensor

// DType is the name of an element type exactly as a safetensors header spells it. A name this package does not
// know is legal: its elements are bytes to every code, and only the shape is kept for display.
type DType string

// The element types of the safetensors reference implementation.
const (
	BOOL       DType = "BOOL"
	F4         DType = "F4"
	F6E2M3     DType = "F6_E2M3"
	F6E3M2     DType = "F6_E3M2"
	U8         DType = "U8"
	I8         DType = "I8"
	F8E5M2     DType = "F8_E5M2"
	F8E4M3     DType = "F8_E4M3"
	F8E8M0     DType = "F8_E8M0"
	F8E4M3FNUZ DType = "F8_E4M3FNUZ"
	F8E5M2FNUZ DType = "F8_E5M2FNUZ"
	I16        DType = "I16"
	U16        DType = "U16"
	F16        DType = "F16"
	BF16       DType = "BF16"
	I32        DType = "I32"
	U32        DType = "U32"
	F32        DType = "F32"
	C64        DType = "C64"
	I64        DType = "I64"
	U64        DType = "U64"
	F64        DType = "F64"
)

var dtypeBits = map[DType]int{
	BOOL: 8, F4: 4, F6E2M3: 6, F6E3M2: 6,
	U8: 8, I8: 8, F8E5M2: 8, F8E4M3: 8, F8E8M0: 8, F8E4M3FNUZ: 8, F8E5M2FNUZ: 8,
	I16: 16, U16: 16, F16: 16, BF16: 16,
	I32: 32, U32: 32, F32: 32,
	C64: 64, I64: 64, U64: 64, F64: 64,
}

// Bits returns the size of one element in bits, or 0 where the type is unknown.
func (d DType) Bits() int { return dtypeBits[d] }

// Known reports whether the element size of d is known.
func (d DType) Known() bool { return dtypeBits[d] != 0 }

// FloatFields is the bit layout of a binary floating-point element, sign first, then exponent, then mantissa.
type FloatFields struct {
	Exp  int // width of the exponent in bits
	Mant int // width of the stored mantissa in bits
}

// Bits is the width of the whole element: one sign bit and both fields.
func (f FloatFields) Bits() int { return 1 + f.Exp + f.Mant }

// Float returns the field widths of d, and false where d is not a float whose exponents are worth coding apart.
func (d DType) Float() (FloatFields, bool) {
	switch d {
	case BF16:
		return FloatFields{8, 7}, true
	case F16:
		return FloatFields{5, 10}, true
	case F32:
		return FloatFields{8, 23}, true
	case F64:
		return FloatFields{11, 52}, true
	case F8E4M3, F8E4M3FNUZ:
		return FloatFields{4, 3}, true
	case F8E5M2, F8E5M2FNUZ:
		return FloatFields{5, 2}, true
	}
	return FloatFields{}, false
}
