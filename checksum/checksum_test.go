package checksum

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// sum64 is the definition in the package comment, word by word.
func sum64(b []byte) uint64 {
	n := len(b)
	b = append(b[:n:n], make([]byte, -n&(rowBytes-1))...)
	h := uint64(n)
	for c := range uint64(columns) {
		var a uint64
		for g := 0; g < len(b)/rowBytes; g++ {
			a += uint64(binary.LittleEndian.Uint32(b[g*rowBytes+4*int(c):])) * uint64(Key(uint32(g)))
		}
		h += mix(a + (c+1)*phi)
	}
	return mix(h)
}

func TestSum64(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	b := make([]byte, MaxBytes)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for _, n := range []int{0, 1, 3, 4, 511, 512, 513, 1024, 5000, 16384, 16385, 65536, MaxBytes - 1, MaxBytes} {
		if got, want := Sum64(b[:n]), sum64(b[:n]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// What files hold must not change.
func TestKnown(t *testing.T) {
	b := make([]byte, 100_000)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	for n, want := range map[int]uint64{
		0:       0xdcf851f9454e654f,
		1:       0xc9699f4a7f8cddd8,
		600:     0x66eb2b5fc07e0c92,
		100_000: 0xb1e5b140d7ca15,
	} {
		if got := Sum64(b[:n]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// Every flipped bit changes the sum, and so does a change of the length by zeros.
func TestFlips(t *testing.T) {
	b := make([]byte, 1100)
	for i := range b {
		b[i] = byte(i)
	}
	want := Sum64(b)
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if Sum64(b) == want {
			t.Fatalf("bit %d", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	if Sum64(append(b, 0)) == want {
		t.Error("a zero at the end")
	}
}
