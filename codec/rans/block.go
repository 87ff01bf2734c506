package rans

import (
	"encoding/binary"

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
	syms            [maxUnits + codec.Slack]byte
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

// planeBuf returns a buffer of n bytes whose content is arbitrary.
func (w *work) planeBuf(n int) []byte {
	if cap(w.planes) < n {
		w.planes = make([]byte, n)
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

// decodeBlock decodes a symbol block into dst and returns the payload, of which the first size bytes count. stored is
// the 128 bytes of states and the words.
func (m *model) decodeBlock(dst, stored []byte, size int) (payload [payloadCap]byte, err error) {
	var states [lanes]uint32
	for l := range states {
		states[l] = binary.LittleEndian.Uint32(stored[4*l:])
	}
	words := stored[stateBytes:]
	used, ok := decodeSymbols(dst, words, &states, m.decTable(), len(dst))
	if !ok {
		return payload, corrupt("%d bytes of words are too few", len(words))
	}
	if used != len(words) {
		return payload, corrupt("%d bytes of words left over", len(words)-used)
	}
	for l, x := range states {
		if x>>16 != 1 {
			return payload, corrupt("lane %d ends in state %#x", l, x)
		}
		binary.LittleEndian.PutUint16(payload[2*l:], uint16(x))
	}
	if !allZero(payload[size:]) {
		return payload, corrupt("payload longer than %d bytes", size)
	}
	return payload, nil
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
