package rans

import (
	"encoding/binary"
	"unsafe"

	"github.com/wcodec/wcodec/codec"
)

const (
	maxUnits   = 32768
	stateBytes = 4 * lanes
	payloadCap = 2 * lanes // bytes that the initial states carry
	planeAlign = 16
)

// work is what a goroutine keeps between chunks.
type work struct {
	syms            [2][maxUnits + codec.Slack]byte // of two chunks, decoded together
	chunks          [2]floatChunk
	words           [2 * maxUnits]byte
	outside, absent [maxUnits / 64]uint64
	planes          []byte // planes on their way into or out of a chunk
}

func workOf(s *codec.Scratch) *work {
	w, ok := s.Private[codec.Rans].(*work)
	if !ok {
		w = new(work)
		s.Private[codec.Rans] = w
	}
	return w
}

// planeBuf returns a buffer of n bytes, and some beyond them, whose content is arbitrary.
func (w *work) planeBuf(n int) []byte {
	if cap(w.planes) < n+codec.Slack {
		w.planes = make([]byte, n+codec.Slack)
	}
	return w.planes[:n]
}

// encodeBlock codes the symbols and the payload, at most 64 bytes, as a symbol block: the final states, and the words,
// which lie in the work space. ok is false where a symbol has no frequency.
func (m *model) encodeBlock(w *work, syms, payload []byte) (states [32]uint32, words []byte, ok bool) {
	var p [payloadCap]byte
	copy(p[:], payload)
	for l := range states {
		states[l] = lowerBound + uint32(binary.LittleEndian.Uint16(p[2*l:]))
	}
	start, ok := encodeSymbols(w.words[:], syms, &states, m.encTable())
	return states, w.words[start:], ok
}

func appendStates(dst []byte, states *[32]uint32) []byte {
	for _, x := range states {
		dst = binary.LittleEndian.AppendUint32(dst, x)
	}
	return dst
}

// stream is a symbol block on its way through a decoder, or symbols on theirs through an encoder. Kernels know where
// its fields are.
type stream struct {
	dst, src []byte // decoder: symbols, words; encoder: words, symbols
	at       int    // bytes of words before the next
	limit    int    // a kernel stops where at has gone beyond it
	absent   int    // an encoding kernel makes it nonzero where a symbol has no frequency
	states   [lanes]uint32
	ahead    [2]span
	ok       bool // the words sufficed
}

// span is memory that will be needed when the symbols are decoded. Kernels ask for it as they go, so that it is on its
// way while they wait for themselves.
type span struct {
	at uintptr
	n  int // times 128 bytes for each group of symbols
}

// need makes kernels ask for b, evenly, by the end of s, which has been opened.
func (s *stream) need(i int, b []byte) {
	if groups := len(s.dst) / groupSyms; groups > 0 && len(b) > 0 {
		s.ahead[i] = span{uintptr(unsafe.Pointer(&b[0])), (len(b)/groups + 127) / 128}
	}
}

// open makes s ready to decode a symbol block into dst. stored is the 128 bytes of states and the words.
func (s *stream) open(dst, stored []byte) {
	s.dst, s.src, s.at, s.ahead = dst, stored[stateBytes:], 0, [2]span{}
	for l := range s.states {
		s.states[l] = binary.LittleEndian.Uint32(stored[4*l:])
	}
}

// payload checks a decoded block and returns its payload, of which the first size bytes count.
func (s *stream) payload(size int) (p [payloadCap]byte, err error) {
	if !s.ok {
		return p, corrupt("%d bytes of words are too few", len(s.src))
	}
	if s.at != len(s.src) {
		return p, corrupt("%d bytes of words left over", len(s.src)-s.at)
	}
	for l, x := range s.states {
		if x>>16 != 1 {
			return p, corrupt("lane %d ends in state %#x", l, x)
		}
		binary.LittleEndian.PutUint16(p[2*l:], uint16(x))
	}
	if !allZero(p[size:]) {
		return p, corrupt("payload longer than %d bytes", size)
	}
	return p, nil
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// padded rounds a length up to what a stored plane occupies.
func padded(n int) int { return (n + planeAlign - 1) &^ (planeAlign - 1) }

// appendPad appends zeros until the bytes from at on are a whole number of 16.
func appendPad(dst []byte, at int) []byte {
	for (len(dst)-at)%planeAlign != 0 {
		dst = append(dst, 0)
	}
	return dst
}
