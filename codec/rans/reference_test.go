package rans

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/codec/codectest"
	"github.com/wcodec/wcodec/tensor"
)

// refChunk encodes a chunk of float units bit by bit, as FORMAT section "rans" says it and in its order. It returns
// nil where the result would not be smaller than src.
func refChunk(unit tensor.DType, drop, base, top int, f *freqs, src []byte) []byte {
	fields, _ := unit.Float()
	size := fields.Bits() / 8
	n := len(src) / size
	at := func(i int) uint64 {
		var b [8]byte
		copy(b[:], src[i*size:(i+1)*size])
		return binary.LittleEndian.Uint64(b[:])
	}
	best := 0
	for s, v := range f {
		if v > f[best] {
			best = s
		}
	}

	// Raw fields as planes of single bits, then packed to the widths.
	r := 1 + fields.Mant - drop - top
	kept := r - 1
	var widths []int
	if left := r; true {
		if r >= 8 {
			widths, left = append(widths, 8), r-8
		}
		for w := 64; w > 0; w /= 2 {
			if left&w != 0 {
				widths = append(widths, w)
			}
		}
	}
	var planes [][]byte
	from := r
	for _, w := range widths {
		from -= w
		plane := make([]byte, (n*w+7)/8)
		for i := range n {
			u := at(i)
			raw := u>>(fields.Exp+fields.Mant)<<kept | u>>drop&(1<<kept-1)
			for b := range w {
				if raw>>(from+b)&1 == 1 {
					plane[(i*w+b)/8] |= 1 << ((i*w + b) % 8)
				}
			}
		}
		planes = append(planes, plane)
	}

	// Indices and exceptions.
	exception := make([]bool, n)
	index := make([]int, n)
	for i := range n {
		index[i] = int(at(i)>>fields.Mant&(1<<fields.Exp-1)) - base
		exception[i] = index[i] < 0 || index[i] > 15 || at(i)&(1<<drop-1) != 0
		if exception[i] {
			index[i] = best >> (i % 2 * 4) & 15
			if top > 0 {
				index[i] = best & 15
			}
		}
	}
	var syms []byte
	if top > 0 {
		for i := range n {
			s := index[i] | int(at(i)>>(fields.Mant-top)&(1<<top-1))<<4
			if f[s] == 0 {
				s, exception[i] = best, true
			}
			syms = append(syms, byte(s))
		}
	} else {
		for i := 0; i < n; i += 2 {
			s := index[i]
			if i+1 < n {
				s |= index[i+1] << 4
			} else {
				fitting := -1
				for c := s; c < 256; c += 16 {
					if f[c] > 0 && (fitting < 0 || f[c] > f[fitting]) {
						fitting = c
					}
				}
				s = max(s, fitting)
			}
			if f[s] == 0 {
				s, exception[i] = best, true
				if i+1 < n {
					exception[i+1] = true
				}
			}
			syms = append(syms, byte(s))
		}
	}

	cut := max(0, len(planes[0])-64)
	var payload [64]byte
	copy(payload[:], planes[0][cut:])
	planes[0] = planes[0][:cut]
	var states [32]uint32
	for l := range states {
		states[l] = 1<<16 + uint32(payload[2*l]) + 256*uint32(payload[2*l+1])
	}
	words := refEncode(syms, &states, f.encTable())

	var out []byte
	for _, p := range planes {
		out = append(out, p...)
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
	}
	for _, x := range states {
		out = binary.LittleEndian.AppendUint32(out, x)
	}
	out = append(out, words...)
	count := 0
	for i := range n {
		if exception[i] {
			out = binary.LittleEndian.AppendUint16(out, uint16(i))
			count++
		}
	}
	for i := range n {
		if exception[i] {
			out = append(out, src[i*size:(i+1)*size]...)
		}
	}
	if out = binary.LittleEndian.AppendUint16(out, uint16(count)); len(out) >= len(src) {
		return nil
	}
	return out
}

func TestFloatChunksAgainstReference(t *testing.T) {
	shrunk := 0
	for _, unit := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64, tensor.F8E4M3, tensor.F8E5M2} {
		fields, _ := unit.Float()
		for _, drop := range []int{0, 1, 3, fields.Mant - 7, fields.Mant} {
			for top := 0; top <= 4; top++ {
				if drop < 0 || top > fields.Mant-drop {
					continue
				}
				for _, n := range []int{1, 64, 257, 640, 2047} {
					src := codectest.Gaussian(unit, n)
					size := fields.Bits() / 8
					for i := range n { // zero the dropped bits of all but a few units
						if i%61 != 60 {
							for b := range drop {
								src[i*size+b/8] &^= 1 << (b % 8)
							}
						}
					}
					l := layout{size: size, exp: uint(fields.Exp), mant: uint(fields.Mant), drop: uint(drop), top: uint(top)}
					var v survey
					v.look(&l, src)
					l.base = v.base(&l)
					var w weights
					for s, k := range l.count(src, v.mode(l.base)).symbols {
						if k != 1 { // some symbols without a frequency
							w[s] = uint64(k)
						}
					}
					if w.sum() == 0 {
						w[17], w[3] = 1, 1
						if top > 0 {
							w[17] = 0
						}
					}
					c := newFloatCoder(l, w.normalise(), 0)
					want := refChunk(unit, drop, int(l.base), top, c.m.freqs, src)
					got, err := c.EncodeChunk(nil, src, new(codec.Scratch))
					if want == nil {
						if !errors.Is(err, codec.ErrUnsuitable) {
							t.Fatalf("%s, drop %d, top %d, %d units: refused by the reference, %v", unit, drop, top, n, err)
						}
						continue
					}
					shrunk++
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%s, drop %d, top %d, %d units: differs from the reference: %v", unit, drop, top, n, err)
					}
				}
			}
		}
	}
	if shrunk < 100 {
		t.Fatalf("only %d chunks were compared", shrunk)
	}
}
