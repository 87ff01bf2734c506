package rans

import (
	"fmt"
	"sync"

	"github.com/wcodec/wcodec/codec"
)

// freqs are the frequencies of 256 symbols. They sum to 4096 and at least two are not zero.
type freqs [256]uint16

// corrupt makes the error of stored bytes that no encoder writes.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("rans: "+format+": %w", append(args, codec.ErrCorrupt)...)
}

// unsuitable makes the error of data that is better left alone.
func unsuitable(format string, args ...any) error {
	return fmt.Errorf("rans: "+format+": %w", append(args, codec.ErrUnsuitable)...)
}

// parseFreqs reads a frequency list (FORMAT "rans", Table) and returns what follows it.
func parseFreqs(b []byte) (*freqs, []byte, error) {
	if len(b) < 32 {
		return nil, nil, corrupt("table ends inside a symbol bitmap")
	}
	bitmap, b := b[:32], b[32:]
	f := new(freqs)
	sum, count := 0, 0
	for s := range f {
		if bitmap[s/8]>>(s%8)&1 == 0 {
			continue
		}
		if len(b) == 0 {
			return nil, nil, corrupt("table ends inside a frequency list")
		}
		v, n := int(b[0]), 1
		if v >= 0x80 {
			if len(b) < 2 || b[1] == 0 || b[1] >= 0x80 {
				return nil, nil, corrupt("frequency of symbol %d is not a short uvarint", s)
			}
			v, n = v&0x7f|int(b[1])<<7, 2
		}
		if v == 0 || v >= probTotal {
			return nil, nil, corrupt("frequency of symbol %d is %d", s, v)
		}
		f[s] = uint16(v)
		sum += v
		count++
		b = b[n:]
	}
	if sum != probTotal || count < 2 {
		return nil, nil, corrupt("%d frequencies sum to %d", count, sum)
	}
	return f, b, nil
}

// append appends the list that parseFreqs reads.
func (f *freqs) append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 32)...)
	for s, v := range f {
		if v == 0 {
			continue
		}
		dst[at+s/8] |= 1 << (s % 8)
		if v >= 0x80 {
			dst = append(dst, byte(v)|0x80)
			v >>= 7
		}
		dst = append(dst, byte(v))
	}
	return dst
}

// model is what coding symbols of one distribution needs. It is immutable; the two tables, which are large, are made
// when first used.
type model struct {
	freqs   *freqs
	present [32]byte // bit s mod 8 of byte s / 8: symbol s has a frequency
	all     bool     // every symbol has one
	top     byte     // the most frequent symbol, the smallest of equals

	encTable func() *encTable
	decTable func() *[4096]uint32
}

func newModel(f *freqs) *model {
	m := &model{freqs: f, all: true}
	for s, v := range f {
		if v == 0 {
			m.all = false
			continue
		}
		m.present[s/8] |= 1 << (s % 8)
		if v > f[m.top] {
			m.top = byte(s)
		}
	}
	m.encTable = sync.OnceValue(f.encTable)
	m.decTable = sync.OnceValue(f.decTable)
	return m
}

func (f *freqs) encTable() *encTable {
	t := new(encTable)
	start := uint16(0)
	for s, v := range f {
		if v != 0 {
			t.set(byte(s), v, start)
			start += v
		}
	}
	return t
}

func (f *freqs) decTable() *[4096]uint32 {
	t := new([4096]uint32)
	at := 0
	for s, v := range f {
		for i := range int(v) {
			t[at+i] = uint32(s) | uint32(i)<<8 | uint32(v)<<20
		}
		at += int(v)
	}
	return t
}
