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
			plane = w.syms[:n]
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

func (c *byteCoder) DecodeChunks(jobs []codec.Job, s *codec.Scratch) {
	w := workOf(s)
	for i := range jobs {
		jobs[i].Err = c.decodeChunk(jobs[i].Dst, jobs[i].Src, w)
	}
}

func (c *byteCoder) decodeChunk(dst, src []byte, w *work) error {
	size := len(c.planes)
	n := len(dst) / size
	if n == 0 || n > maxUnits || len(dst)%size != 0 {
		return corrupt("chunk of %d bytes", len(dst))
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
		stored := src[at : at+length]
		if !allZero(src[at+length : at+padded(length)]) {
			return corrupt("padding of plane %d is not zero", k)
		}
		at += padded(length)
		plane := w.syms[:n]
		if size == 1 {
			plane = dst
		}
		switch p.method {
		case methodRaw:
			plane = stored
		case methodConstant:
			for i := range plane {
				plane[i] = p.value
			}
		case methodCoded:
			cut := n - min(payloadCap, n)
			payload, err := p.m.decodeBlock(plane[:cut], stored, n-cut)
			if err != nil {
				return err
			}
			copy(plane[cut:], payload[:])
		}
		if size > 1 || p.method == methodRaw {
			scatter(dst, plane, size, k)
		}
	}
	if at != end {
		return corrupt("%d bytes between planes and counts", end-at)
	}
	return nil
}
