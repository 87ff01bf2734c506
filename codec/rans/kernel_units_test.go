//go:build amd64 && !noasm

package rans

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/wcodec/wcodec/tensor"
)

// The offsets in _generate/units.go.
func TestUnitRunOffsets(t *testing.T) {
	var r unitRun
	var f field
	for name, at := range map[string][2]uintptr{
		"units":   {unsafe.Offsetof(r.units), 0},
		"outside": {unsafe.Offsetof(r.outside), 8},
		"turns":   {unsafe.Offsetof(r.turns), 16},
		"planes":  {unsafe.Offsetof(r.planes), 24},
		"mant":    {unsafe.Offsetof(r.mant), 32},
		"top":     {unsafe.Offsetof(r.top), 40},
		"sign":    {unsafe.Offsetof(r.sign), 48},
		"drop":    {unsafe.Offsetof(r.drop), 56},
		"base":    {unsafe.Offsetof(r.base), 64},
		"exps":    {unsafe.Offsetof(r.exps), 68},
		"tops":    {unsafe.Offsetof(r.tops), 72},
		"kept":    {unsafe.Offsetof(r.kept), 76},
		"gone":    {unsafe.Offsetof(r.gone), 80},
		"syms":    {unsafe.Offsetof(r.syms), 88},
		"raw":     {unsafe.Offsetof(r.raw), 120},
		"at":      {unsafe.Offsetof(f.at), 0},
		"step":    {unsafe.Offsetof(f.step), 8},
		"shift":   {unsafe.Offsetof(f.shift), 16},
		"class":   {unsafe.Offsetof(f.class), 24},
		"field":   {unsafe.Sizeof(f), 32},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is %d, the kernels have %d", name, at[0], at[1])
		}
	}
}

// parts are whole blocks of units taken apart.
type parts struct {
	syms    []byte
	planes  [8][]byte
	outside []uint64
}

// newParts returns parts for blocks of units, each before memory that must not be touched, slack bytes away.
func newParts(t testing.TB, l *layout, blocks, slack int) *parts {
	p := &parts{syms: fenced(t, l.symbols(64*blocks), slack), outside: make([]uint64, blocks)}
	for k := range l.widths {
		p.planes[k] = fenced(t, l.planeBytes(64*blocks, k), slack)
	}
	return p
}

func (p *parts) equal(o *parts, blocks int, l *layout) bool {
	n := 64 * blocks
	for k := range l.widths {
		if size := l.planeBytes(n, k); !bytes.Equal(p.planes[k][:size], o.planes[k][:size]) {
			return false
		}
	}
	return equalWords(p.outside[:blocks], o.outside[:blocks]) && bytes.Equal(p.syms[:l.symbols(n)], o.syms[:l.symbols(n)])
}

// splitBlocks is how units are taken apart where nothing faster suits.
func splitBlocks(l *layout, p *parts, units []byte) {
	var b block
	for w := range p.outside {
		p.outside[w] = l.split(&b, units[64*l.size*w:64*l.size*(w+1)])
		for i, s := range b.sym {
			switch {
			case l.top > 0:
				p.syms[64*w+i] = s
			case i%2 == 0:
				p.syms[32*w+i/2] = s
			default:
				p.syms[32*w+i/2] |= s << 4
			}
		}
		shift := l.rawBits()
		for k, width := range l.widths {
			shift -= uint(width)
			b.pack(p.planes[k][8*int(width)*w:8*int(width)*(w+1)], uint(width), shift)
		}
	}
}

// mergeBlocks is the way back.
func mergeBlocks(l *layout, p *parts, units []byte) {
	var b block
	for w := range p.outside {
		clear(b.raw[:])
		shift := l.rawBits()
		for k, width := range l.widths {
			shift -= uint(width)
			b.unpack(p.planes[k][8*int(width)*w:8*int(width)*(w+1)], uint(width), shift)
		}
		for i := range b.sym {
			if l.top > 0 {
				b.sym[i] = p.syms[64*w+i]
			} else {
				b.sym[i] = p.syms[32*w+i/2] >> (i % 2 * 4) & 15
			}
		}
		l.merge(units[64*l.size*w:64*l.size*(w+1)], &b)
	}
}

// checkUnits takes units apart and puts them together on every route.
func checkUnits(t *testing.T, l *layout, content []byte, slack int) {
	blocks := len(content) / (64 * l.size)
	units := fenced(t, 64*l.size*blocks, 0)
	copy(units, content)
	want := newParts(t, l, blocks, slack)
	splitBlocks(l, want, units)
	merged := make([]byte, len(units))
	mergeBlocks(l, want, merged)
	eachRoute(func(route string) {
		got := newParts(t, l, blocks, 0)
		if done := splitUnits(l, got.syms, &got.planes, units, got.outside); done > 0 && !got.equal(want, done, l) || done > blocks {
			t.Fatalf("%s: %+v: split of %d blocks differs", route, *l, done)
		}
		dst := fenced(t, len(units), 0)
		done := mergeUnits(l, dst, want.syms, &want.planes)
		if done > blocks || best != routeGeneric && slack >= fieldRead[best] && done < blocks ||
			!bytes.Equal(dst[:64*l.size*done], merged[:64*l.size*done]) {
			t.Fatalf("%s: %+v: merge of %d blocks of %d differs", route, *l, done, blocks)
		}
	})
}

var unitTypes = []tensor.DType{tensor.F8E4M3, tensor.F8E5M2, tensor.F16, tensor.BF16, tensor.F32}

// testLayout makes the layout of a type, and false where there is none for these parameters.
func testLayout(unit tensor.DType, drop, top uint, base uint64) (*layout, bool) {
	f, _ := unit.Float()
	l := &layout{size: f.Bits() / 8, exp: uint(f.Exp), mant: uint(f.Mant), drop: drop, top: top, base: base}
	if drop+top > l.mant || base > maxBase(l.exp) {
		return nil, false
	}
	l.setWidths()
	return l, true
}

func TestUnitRoutes(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 9))
	content := make([]byte, 4*64*5)
	for _, unit := range unitTypes {
		for drop := range uint(24) {
			for top := range uint(5) {
				for _, base := range []uint64{0, 3, 16, 112, 240} {
					l, ok := testLayout(unit, drop, top, base)
					if !ok {
						continue
					}
					for i := range content {
						content[i] = byte(r.Uint32())
					}
					checkUnits(t, l, content[:l.size*64*(1+r.IntN(5))], []int{0, 16, 64}[r.IntN(3)])
				}
			}
		}
	}
}

func FuzzUnitRoutes(f *testing.F) {
	f.Add(uint8(2), uint8(0), uint8(0), uint8(7), []byte("some units"))
	f.Add(uint8(4), uint8(13), uint8(2), uint8(100), bytes.Repeat([]byte{1, 2, 3, 0x3f, 0x80}, 100))
	f.Fuzz(func(t *testing.T, unit, drop, top, base uint8, content []byte) {
		l, ok := testLayout(unitTypes[int(unit)%len(unitTypes)], uint(drop%24), uint(top%5), uint64(base))
		if !ok || len(content) == 0 {
			return
		}
		checkUnits(t, l, bytes.Repeat(content, 1+64*4*30/len(content)), int(drop/24)*8)
	})
}
