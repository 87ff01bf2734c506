package rans

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/wcodec/wcodec/codec"
)

// floatCoder is modes 1 (pairs) and 3 (joint). A stored chunk is, each plane padded to a multiple of 16 bytes,
//
//	first plane without its payload | other planes | 32 states | words | positions | units | u16 number of exceptions
type floatCoder struct {
	layout
	path path
	m    *model
	bits float64
}

// newFloatCoder completes a layout.
func newFloatCoder(l layout, f *freqs, bits float64) *floatCoder {
	l.setWidths()
	return &floatCoder{layout: l, path: pathOf(&l), m: newModel(f), bits: bits}
}

func (c *floatCoder) BitsPerUnit() float64 { return c.bits }

func (c *floatCoder) AppendTable(dst []byte) []byte {
	mode := byte(modePairs)
	if c.top > 0 {
		mode = modeJoint
	}
	dst = append(dst, mode, byte(c.drop), byte(c.base), byte(c.base>>8))
	if c.top > 0 {
		dst = append(dst, byte(c.top))
	}
	return c.m.freqs.append(dst)
}

// EncodeChunk fails with codec.ErrUnsuitable where the chunk would not shrink.
func (c *floatCoder) EncodeChunk(dst, src []byte, s *codec.Scratch) ([]byte, error) {
	n := len(src) / c.size
	if n == 0 || n > maxUnits || len(src)%c.size != 0 {
		return dst, unsuitable("chunk of %d bytes", len(src))
	}
	w := workOf(s)
	at, m := len(dst), c.symbols(n)
	syms := w.syms[0][:m]

	// The first plane is written in place, whole, and then gives its end away.
	first := c.planeBytes(n, 0)
	out := slices.Grow(dst, len(src)+planeAlign)[:at+first]
	rest := c.split(w, out[at:], src)
	count := c.settle(w, syms, n)

	cut := first - min(payloadCap, first)
	room := len(src) - padded(cut) - len(rest) - stateBytes - count*(2+c.size) - 2
	if room <= 0 {
		return dst, unsuitable("%d of %d units are exceptions", count, n)
	}
	states, words, ok := c.m.encodeBlock(w, syms, out[at+cut:])
	if !ok || len(words) >= room {
		return dst, unsuitable("chunk of %d bytes does not shrink", len(src))
	}
	out = appendPad(out[:at+cut], at)
	out = append(out, rest...)
	out = appendStates(out, &states)
	out = append(out, words...)
	return appendExceptions(out, src, w.outside[:(n+63)/64], count, c.size), nil
}

// split takes a chunk apart: symbols to the work space, the first plane to first, the other planes, padded, to the
// returned slice, and which units are exceptions to w.outside.
func (c *floatCoder) split(w *work, first, src []byte) (rest []byte) {
	n := len(src) / c.size
	from := 0
	if c.isBF16() {
		from = n &^ 1
		splitBF16(w.syms[0][:from/2], first[:from], src[:2*from], uint8(c.base), w.outside[:])
		if n == from {
			return nil
		}
		from = n &^ 63 // the last unit of an odd number goes with its whole block below
	}
	var planes [8][]byte
	planes[0] = first
	total := 0
	for k := 1; k < len(c.widths); k++ {
		total += padded(c.planeBytes(n, k))
	}
	rest = w.planeBuf(total)
	for k, at := 1, 0; k < len(c.widths); k++ {
		size := c.planeBytes(n, k)
		planes[k] = rest[at : at+size]
		at += padded(size)
		clear(rest[at-padded(size)+size : at])
	}
	if from == 0 {
		outside := w.outside[:n/64]
		if blocks := splitUnits(&c.layout, w.syms[0][:], &planes, src, outside); blocks > 0 {
			from = 64 * blocks
		} else if c.path.split != nil {
			c.path.split(&c.layout, w.syms[0][:], &planes, src, outside)
			from = n &^ 63
		}
	}
	var b block
	for ; from < n; from += 64 {
		units := src[from*c.size : min(from+64, n)*c.size]
		w.outside[from/64] = c.layout.split(&b, units)
		if c.top > 0 {
			copy(w.syms[0][from:], b.sym[:])
		} else {
			for i := range 32 {
				w.syms[0][from/2+i] = b.sym[2*i]&15 | b.sym[2*i+1]<<4
			}
		}
		shift := c.rawBits()
		for k, width := range c.widths {
			shift -= uint(width)
			part := planes[k][from/8*int(width):]
			if len(part) >= 8*int(width) {
				b.pack(part, uint(width), shift)
				continue
			}
			var tmp [8 * 32]byte
			b.pack(tmp[:], uint(width), shift)
			copy(part, tmp[:])
		}
	}
	return rest
}

// settle gives every unit in w.outside, and every symbol without a frequency, a symbol that can be coded, adds the units
// of the latter to w.outside, and returns the number of exceptions.
func (c *floatCoder) settle(w *work, syms []byte, n int) (count int) {
	top := c.m.top
	outside := w.outside[:(n+63)/64]
	perSym := 2
	if c.layout.top > 0 {
		perSym = 1
	}
	for k, set := range outside {
		for ; set != 0; set &= set - 1 {
			i := 64*k + bits.TrailingZeros64(set)
			if sym := &syms[i/perSym]; i%perSym == 0 {
				*sym = *sym&0xf0 | top&15
			} else {
				*sym = *sym&15 | top&0xf0
			}
		}
	}
	if n%perSym != 0 {
		syms[n/2] = c.lastSymbol(syms[n/2] & 15)
	}
	if !c.m.all && absentSymbols(w.absent[:], syms, &c.m.present) {
		for k, set := range w.absent[:(len(syms)+63)/64] {
			for ; set != 0; set &= set - 1 {
				i := 64*k + bits.TrailingZeros64(set)
				syms[i] = top
				for u := i * perSym; u < min(n, (i+1)*perSym); u++ {
					outside[u/64] |= 1 << (u % 64)
				}
			}
		}
	}
	for _, set := range outside {
		count += bits.OnesCount64(set)
	}
	return count
}

// lastSymbol completes the pair of a lone last unit: the most frequent symbol with the low half low, the smallest of
// equals. Where there is none the result has no frequency.
func (c *floatCoder) lastSymbol(low byte) byte {
	best := low
	for high := byte(1); high < 16; high++ {
		if s := low | high<<4; c.m.freqs[s] > c.m.freqs[best] {
			best = s
		}
	}
	return best
}

func appendExceptions(dst, src []byte, outside []uint64, count, size int) []byte {
	at := len(dst)
	for k, set := range outside {
		for ; set != 0; set &= set - 1 {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(64*k+bits.TrailingZeros64(set)))
		}
	}
	for k := range count {
		i := int(binary.LittleEndian.Uint16(dst[at+2*k:]))
		dst = append(dst, src[i*size:(i+1)*size]...)
	}
	return binary.LittleEndian.AppendUint16(dst, uint16(count))
}

// floatChunk is a chunk between the steps of its decoding.
type floatChunk struct {
	planes  [8][]byte
	carried int // bytes of the first plane that are payload
	count   int // exceptions
	tail    int // where they begin in the stored bytes
	syms    stream
}

// DecodeChunks takes two chunks at a time, because kernels decode two blocks of symbols in little more than the time of
// one.
func (c *floatCoder) DecodeChunks(jobs []codec.Job, s *codec.Scratch) {
	w := workOf(s)
	for ; len(jobs) > 1; jobs = jobs[2:] {
		a, b := &jobs[0], &jobs[1]
		a.Err, b.Err = c.open(w, 0, a), c.open(w, 1, b)
		if a.Err == nil && b.Err == nil {
			decodeStreams(&w.chunks[0].syms, &w.chunks[1].syms, c.m.decTable())
			a.Err, b.Err = c.close(w, 0, a), c.close(w, 1, b)
			continue
		}
		for i, j := range [...]*codec.Job{a, b} {
			if j.Err == nil {
				decodeStream(&w.chunks[i].syms, c.m.decTable())
				j.Err = c.close(w, i, j)
			}
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if j.Err = c.open(w, 0, j); j.Err == nil {
			decodeStream(&w.chunks[0].syms, c.m.decTable())
			j.Err = c.close(w, 0, j)
		}
	}
}

// open finds the parts of a chunk.
func (c *floatCoder) open(w *work, slot int, j *codec.Job) error {
	src, h := j.Src, &w.chunks[slot]
	n := len(j.Dst) / c.size
	if n == 0 || n > maxUnits || len(j.Dst)%c.size != 0 {
		return corrupt("chunk of %d bytes", len(j.Dst))
	}
	if len(src) < 2 {
		return corrupt("chunk of %d bytes stored", len(src))
	}
	h.count = int(binary.LittleEndian.Uint16(src[len(src)-2:]))
	if h.count > n {
		return corrupt("%d exceptions in a chunk of %d units", h.count, n)
	}
	h.carried = min(payloadCap, c.planeBytes(n, 0))
	at := 0
	for k := range c.widths {
		size := c.planeBytes(n, k)
		if k == 0 {
			size -= h.carried
		}
		if len(src)-at < padded(size) {
			return corrupt("chunk of %d bytes ends inside its planes", len(src))
		}
		h.planes[k] = src[at : at+size]
		if !allZero(src[at+size : at+padded(size)]) {
			return corrupt("padding of plane %d is not zero", k)
		}
		if k > 0 && !cleanEnd(h.planes[k], n, c.widths[k]) {
			return corrupt("unused bits of plane %d are not zero", k)
		}
		at += padded(size)
	}
	h.tail = len(src) - 2 - h.count*(2+c.size)
	if h.tail-at < stateBytes || (h.tail-at)%2 != 0 {
		return corrupt("%d bytes are left for states and words", h.tail-at)
	}
	h.syms.open(w.syms[slot][:c.symbols(n)], src[at:h.tail])
	h.syms.need(0, j.Dst)
	h.syms.need(1, src[:at])
	return nil
}

// close puts the units together once the symbols are decoded.
func (c *floatCoder) close(w *work, slot int, j *codec.Job) error {
	h := &w.chunks[slot]
	payload, err := h.syms.payload(h.carried)
	if err != nil {
		return err
	}
	if !cleanEnd(payload[:h.carried], len(j.Dst)/c.size, c.widths[0]) {
		return corrupt("unused bits of plane 0 are not zero")
	}
	if c.isBF16() {
		mergeChunkBF16(j.Dst, h.syms.dst, h.planes[0], payload[:h.carried], uint8(c.base))
	} else {
		c.merge(w, j.Dst, h.syms.dst, &h.planes, payload[:h.carried])
	}
	return applyExceptions(j.Dst, j.Src[h.tail:len(j.Src)-2], h.count, c.size)
}

// cleanEnd reports whether the bits behind the last of n units in a plane are zero.
func cleanEnd(plane []byte, n int, width uint8) bool {
	used := n * int(width) % 8
	return used == 0 || plane[len(plane)-1]>>used == 0
}

// mergeChunkBF16 merges the units whose raw bytes are stored, and then those whose raw bytes were payload.
func mergeChunkBF16(dst, syms, plane, payload []byte, base uint8) {
	cut := len(plane) &^ 1
	mergeBF16(dst[:2*cut], syms, plane[:cut], base)
	var raw [payloadCap + 2]byte
	var units [2 * len(raw)]byte
	n := copy(raw[:], plane[cut:])
	n += copy(raw[n:], payload)
	mergeBF16(units[:2*(n+n&1)], syms[cut/2:], raw[:n+n&1], base)
	copy(dst[2*cut:], units[:2*n])
}

// merge puts the units of a chunk together, 64 at a time.
func (c *floatCoder) merge(w *work, dst, syms []byte, planes *[8][]byte, payload []byte) {
	n := len(dst) / c.size
	first := w.planeBuf(len(planes[0]) + len(payload))
	copy(first[copy(first, planes[0]):], payload)
	parts := *planes
	parts[0] = first
	from := 0
	if blocks := mergeUnits(&c.layout, dst, syms, &parts); blocks > 0 {
		from = 64 * blocks
	} else if c.path.merge != nil {
		c.path.merge(&c.layout, dst, syms, &parts)
		from = n &^ 63
	}
	var b block
	for ; from < n; from += 64 {
		clear(b.raw[:])
		shift := c.rawBits()
		for k, width := range c.widths {
			shift -= uint(width)
			part := parts[k][from/8*int(width):]
			if len(part) >= 8*int(width) {
				b.unpack(part, uint(width), shift)
				continue
			}
			var tmp [8 * 32]byte
			copy(tmp[:], part)
			b.unpack(tmp[:], uint(width), shift)
		}
		if c.top > 0 {
			copy(b.sym[:], syms[from:])
		} else {
			for i, sym := range syms[from/2 : min(from/2+32, len(syms))] {
				b.sym[2*i], b.sym[2*i+1] = sym&15, sym>>4
			}
		}
		c.layout.merge(dst[from*c.size:min(from+64, n)*c.size], &b)
	}
}

// applyExceptions writes the exceptions, positions and then units, over what was decoded.
func applyExceptions(dst, stored []byte, count, size int) error {
	n, units := len(dst)/size, stored[2*count:]
	last := -1
	for k := range count {
		i := int(binary.LittleEndian.Uint16(stored[2*k:]))
		if i <= last || i >= n {
			return corrupt("exception %d of %d at unit %d, after %d", k, count, i, last)
		}
		last = i
		copy(dst[i*size:(i+1)*size], units[k*size:])
	}
	return nil
}
