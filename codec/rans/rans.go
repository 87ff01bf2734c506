package rans

import (
	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// Modes, the first byte of a table.
const (
	modePairs  = 1
	modePlanes = 2
	modeJoint  = 3
)

// New returns the code. It suits float units, and any units some of whose byte planes are uneven.
func New() codec.Codec { return code{} }

type code struct{}

func (code) ID() codec.ID { return codec.Rans }
func (code) Name() string { return "rans" }

// unitSize is the size in bytes of what the code sees as a unit; types that are not whole bytes are bytes.
func unitSize(unit tensor.DType) int {
	switch b := unit.Bits(); b {
	case 16, 32, 64:
		return b / 8
	}
	return 1
}

// Parse reads a table (FORMAT "rans", Table).
func (code) Parse(unit tensor.DType, table []byte) (codec.Coder, error) {
	if len(table) == 0 {
		return nil, corrupt("no table")
	}
	switch mode := table[0]; mode {
	case modePlanes:
		return parsePlanes(unit, table[1:])
	case modePairs, modeJoint:
		return parseFloat(unit, table[1:], mode == modeJoint)
	default:
		return nil, corrupt("mode %d", mode)
	}
}

func parseFloat(unit tensor.DType, table []byte, joint bool) (codec.Coder, error) {
	f, ok := unit.Float()
	if !ok {
		return nil, corrupt("a mode for floats, and units of type %s", unit)
	}
	l := layout{size: f.Bits() / 8, exp: uint(f.Exp), mant: uint(f.Mant)}
	head := 3
	if joint {
		head = 4
	}
	if len(table) < head {
		return nil, corrupt("table of %d bytes", len(table))
	}
	l.drop, l.base = uint(table[0]), uint64(table[1])|uint64(table[2])<<8
	if l.drop > l.mant || l.base > maxBase(l.exp) {
		return nil, corrupt("drop %d, base %d in a table for %s", l.drop, l.base, unit)
	}
	if joint {
		l.top = uint(table[3])
		if l.top < 1 || l.top > 4 || l.top > l.mant-l.drop {
			return nil, corrupt("%d mantissa bits in a symbol", l.top)
		}
	}
	fr, rest, err := parseFreqs(table[head:])
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, corrupt("%d bytes after the table", len(rest))
	}
	if !joint {
		return newFloatCoder(l, fr, float64(8*l.size)), nil
	}
	for s, v := range fr {
		if v != 0 && s>>4>>l.top != 0 {
			return nil, corrupt("symbol %d has more than %d mantissa bits", s, l.top)
		}
	}
	return newFloatCoder(l, fr, float64(8*l.size)), nil
}
