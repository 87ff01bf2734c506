package rans

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/wcodec/wcodec/codec/codectest"
	"github.com/wcodec/wcodec/tensor"
)

// Every path must do what the plain way does, exceptions included.
func TestPaths(t *testing.T) {
	const n = 64 * 5
	for _, tc := range []struct {
		unit  tensor.DType
		drops []uint
		bases []uint64
	}{
		{tensor.BF16, []uint{0}, []uint64{0, 1, 110, 240}},
		{tensor.F16, []uint{0, 1, 2, 3}, []uint64{0, 3, 16}},
		{tensor.F32, []uint{0, 16}, []uint64{0, 1, 110, 240}},
		{tensor.F8E4M3, []uint{0}, []uint64{0}},
		{tensor.F8E5M2, []uint{0}, []uint64{0, 7, 16}},
	} {
		f, _ := tc.unit.Float()
		for _, drop := range tc.drops {
			for _, base := range tc.bases {
				l := layout{size: f.Bits() / 8, exp: uint(f.Exp), mant: uint(f.Mant), drop: drop, base: base}
				l.setWidths()
				p := pathOf(&l)
				if p.split == nil || p.merge == nil {
					t.Fatalf("%s, drop %d: no path", tc.unit, drop)
				}
				for _, src := range [][]byte{codectest.Random(n * l.size), codectest.Gaussian(tc.unit, n)} {
					name := fmt.Sprintf("%s, drop %d, base %d", tc.unit, drop, base)
					var planes, want [8][]byte
					for k := range l.widths {
						planes[k] = codectest.Random(l.planeBytes(n, k))
						want[k] = make([]byte, l.planeBytes(n, k))
					}
					syms, outside := make([]byte, n/2), []uint64{1, 2, 3, 4, 5}
					wantSyms, wantOutside := make([]byte, n/2), make([]uint64, n/64)
					var b block
					for w := range wantOutside {
						wantOutside[w] = l.split(&b, src[64*w*l.size:64*(w+1)*l.size])
						for i := range 32 {
							wantSyms[32*w+i] = b.sym[2*i] | b.sym[2*i+1]<<4
						}
						shift := l.rawBits()
						for k, width := range l.widths {
							shift -= uint(width)
							b.pack(want[k][8*w*int(width):], uint(width), shift)
						}
					}
					p.split(&l, syms, &planes, src, outside)
					if !bytes.Equal(syms, wantSyms) || !slices.Equal(outside, wantOutside) {
						t.Fatalf("%s: symbols or exceptions differ", name)
					}
					for k := range l.widths {
						if !bytes.Equal(planes[k], want[k]) {
							t.Fatalf("%s: plane %d differs", name, k)
						}
					}
					dst := make([]byte, len(src))
					p.merge(&l, dst, syms, &planes)
					for i := range n {
						got, want := dst[i*l.size:(i+1)*l.size], src[i*l.size:(i+1)*l.size]
						if outside[i/64]>>(i%64)&1 == 0 && !bytes.Equal(got, want) {
							t.Fatalf("%s: unit %d: %x became %x", name, i, want, got)
						}
					}
				}
			}
		}
	}
}
