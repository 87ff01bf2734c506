package rans

import (
	"encoding/binary"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// Methods of a byte plane.
const (
	methodRaw      = 0
	methodConstant = 1
	methodCoded    = 2
)

// bytePlane is how byte k of every unit is stored.
type bytePlane struct {
	method uint8
	value  uint8  // of a constant plane
	m      *model // of a coded plane
}

// byteCoder is mode 2, planes. A stored chunk is plane by plane, the lowest byte first: raw bytes, nothing for a
// constant, or 32 states and words; each padded to a multiple of 16 bytes; then a u16 number of words for each coded
// plane.
type byteCoder struct {
	planes []bytePlane
	coded  int
	bits   float64
}

func newByteCoder(planes []bytePlane, bits float64) *byteCoder {
	c := &byteCoder{planes: planes, bits: bits}
	for _, p := range planes {
		if p.method == methodCoded {
			c.coded++
		}
	}
	return c
}

func parsePlanes(unit tensor.DType, table []byte) (codec.Coder, error) {
	planes := make([]bytePlane, unitSize(unit))
	for k := range planes {
		if len(table) == 0 {
			return nil, corrupt("table ends before plane %d", k)
		}
		p := bytePlane{method: table[0]}
		table = table[1:]
		switch p.method {
		case methodRaw:
		case methodConstant:
			if len(table) == 0 {
				return nil, corrupt("table ends inside plane %d", k)
			}
			p.value, table = table[0], table[1:]
		case methodCoded:
			f, rest, err := parseFreqs(table)
			if err != nil {
				return nil, err
			}
			p.m, table = newModel(f), rest
		default:
			return nil, corrupt("method %d of plane %d", p.method, k)
		}
		planes[k] = p
	}
	if len(table) != 0 {
		return nil, corrupt("%d bytes after the table", len(table))
	}
	return newByteCoder(planes, float64(8*len(planes))), nil
}

func (c *byteCoder) BitsPerUnit() float64 { return c.bits }

func (c *byteCoder) AppendTable(dst []byte) []byte {
	dst = append(dst, modePlanes)
	for _, p := range c.planes {
		dst = append(dst, p.method)
		switch p.method {
		case methodConstant:
			dst = append(dst, p.value)
		case methodCoded:
			dst = p.m.freqs.append(dst)
		}
	}
	return dst
}

// EncodeChunk fails with codec.ErrUnsuitable where the chunk would not shrink or the table cannot express it.
func (c *byteCoder) EncodeChunk(dst, src []byte, s *codec.Scratch) ([]byte, error) {
	size := len(c.planes)
	n := len(src) / size
	if n == 0 || n > maxUnits || len(src)%size != 0 {
		return dst, unsuitable("chunk of %d bytes", len(src))
	}
	w := workOf(s)
	at, most := len(dst), len(dst)+len(src)
	out := dst
	var counts [8]uint16
	tail := counts[:0]
	for k, p := range c.planes {
		plane := src
		if size > 1 {
			plane = w.syms[0][:n]
			gather(plane, src, size, k)
		}
		switch p.method {
		case methodRaw:
			out = append(out, plane...)
		case methodConstant:
			if !allEqual(plane, p.value) {
				return dst, unsuitable("byte %d of the units is not constant", k)
			}
		case methodCoded:
			cut := n - min(payloadCap, n)
			states, words, ok := p.m.encodeBlock(w, plane[:cut], plane[cut:])
			if !ok {
				return dst, unsuitable("byte %d of the units has values without a frequency", k)
			}
			out = appendStates(out, &states)
			out = append(out, words...)
			tail = append(tail, uint16(len(words)/2))
		}
		out = appendPad(out, at)
		if len(out)+2*c.coded >= most {
			return dst, unsuitable("chunk of %d bytes does not shrink", len(src))
		}
	}
	for _, x := range tail {
		out = binary.LittleEndian.AppendUint16(out, x)
	}
	return out, nil
}

func allEqual(b []byte, v byte) bool {
	for _, x := range b {
		if x != v {
			return false
		}
	}
	return true
}

// gather copies byte k of every unit.
func gather(dst, src []byte, size, k int) {
	src = src[k:]
	for i := range dst {
		dst[i] = src[i*size]
	}
}

// scatter is the way back.
func scatter(dst, src []byte, size, k int) {
	dst = dst[k:]
	for i, x := range src {
		dst[i*size] = x
	}
}

// DecodeChunks takes two chunks at a time, plane by plane, because kernels decode two blocks of symbols in little more
// than the time of one.
func (c *byteCoder) DecodeChunks(jobs []codec.Job, s *codec.Scratch) {
	w := workOf(s)
	for len(jobs) > 0 {
		now := jobs[:min(2, len(jobs))]
		jobs = jobs[len(now):]
		var stored [2][8][]byte
		for i := range now {
			now[i].Err = c.open(&stored[i], &now[i])
		}
		for k, p := range c.planes {
			if p.method == methodCoded {
				c.decodePlane(w, k, now, &stored)
			}
			for i := range now {
				if j := &now[i]; j.Err == nil {
					j.Err = c.close(w, i, k, j, stored[i][k])
				}
			}
		}
	}
}

// open finds the planes of a chunk.
func (c *byteCoder) open(stored *[8][]byte, j *codec.Job) error {
	size, src := len(c.planes), j.Src
	n := len(j.Dst) / size
	if n == 0 || n > maxUnits || len(j.Dst)%size != 0 {
		return corrupt("chunk of %d bytes", len(j.Dst))
	}
	if len(src) < 2*c.coded {
		return corrupt("chunk of %d bytes stored", len(src))
	}
	end := len(src) - 2*c.coded
	counts := src[end:]
	at := 0
	for k, p := range c.planes {
		length := 0
		switch p.method {
		case methodRaw:
			length = n
		case methodCoded:
			length = stateBytes + 2*int(binary.LittleEndian.Uint16(counts))
			counts = counts[2:]
		}
		if end-at < padded(length) {
			return corrupt("chunk of %d bytes ends inside plane %d", len(src), k)
		}
		stored[k] = src[at : at+length]
		if !allZero(src[at+length : at+padded(length)]) {
			return corrupt("padding of plane %d is not zero", k)
		}
		at += padded(length)
	}
	if at != end {
		return corrupt("%d bytes between planes and counts", end-at)
	}
	return nil
}

// plane returns where plane k of a chunk is decoded: one of a single plane, where it belongs.
func (c *byteCoder) plane(w *work, slot int, j *codec.Job) []byte {
	if len(c.planes) == 1 {
		return j.Dst
	}
	return w.syms[slot][:len(j.Dst)/len(c.planes)]
}

// decodePlane decodes the symbols of a coded plane of all sound chunks.
func (c *byteCoder) decodePlane(w *work, k int, jobs []codec.Job, stored *[2][8][]byte) {
	sound := 0
	for i := range jobs {
		if jobs[i].Err == nil {
			plane := c.plane(w, i, &jobs[i])
			w.chunks[i].syms.open(plane[:len(plane)-min(payloadCap, len(plane))], stored[i][k])
			sound++
		}
	}
	if sound == 2 {
		decodeStreams(&w.chunks[0].syms, &w.chunks[1].syms, c.planes[k].m.decTable())
		return
	}
	for i := range jobs {
		if jobs[i].Err == nil {
			decodeStream(&w.chunks[i].syms, c.planes[k].m.decTable())
		}
	}
}

// close puts plane k of a chunk in place.
func (c *byteCoder) close(w *work, slot, k int, j *codec.Job, stored []byte) error {
	plane, size := c.plane(w, slot, j), len(c.planes)
	switch p := c.planes[k]; p.method {
	case methodRaw:
		scatter(j.Dst, stored, size, k)
		return nil
	case methodConstant:
		for i := range plane {
			plane[i] = p.value
		}
	case methodCoded:
		carried := min(payloadCap, len(plane))
		payload, err := w.chunks[slot].syms.payload(carried)
		if err != nil {
			return err
		}
		copy(plane[len(plane)-carried:], payload[:])
	}
	if size > 1 {
		scatter(j.Dst, plane, size, k)
	}
	return nil
}
