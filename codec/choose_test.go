package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/codec/rans"
	"github.com/wcodec/wcodec/codec/raw"
	"github.com/wcodec/wcodec/codec/zstd"
	"github.com/wcodec/wcodec/tensor"
)

func weights(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 2*n)
	for i := range n {
		v := math.Float32bits(float32(r.NormFloat64() * 0.02))
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v>>16))
	}
	return b
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func skewed(n int) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(int8(r.NormFloat64() * 20))
	}
	return b
}

func indices(n int) []byte {
	b := make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(i))
	}
	return b
}

func TestChoose(t *testing.T) {
	registry := codec.NewRegistry(raw.New(), rans.New(), zstd.New())
	constant := bytes.Repeat([]byte{0x80, 0x3f}, 1<<20)
	rows := bytes.Repeat(weights(256), 2048)
	sparse := weights(1 << 20)
	for i := range len(sparse) / 2048 {
		if i%8 != 0 {
			clear(sparse[2048*i : 2048*(i+1)])
		}
	}
	for _, tc := range []struct {
		what string
		name string
		unit tensor.DType
		data []byte
		want string
		bits float64 // most that may be estimated
	}{
		{"weights", "", tensor.BF16, weights(4 << 20), "rans", 10.7},
		{"weights", "auto", tensor.BF16, weights(1 << 20), "rans", 10.7},
		{"few weights", "auto", tensor.BF16, weights(2048), "rans", 11.5},
		{"too few weights", "auto", tensor.BF16, weights(100), "raw", 16},
		{"weights as bytes", "auto", tensor.U8, weights(1 << 20), "rans", 8},
		{"weights", "zstd", tensor.BF16, weights(1 << 20), "zstd", 13.5},
		{"weights", "raw", tensor.BF16, weights(1 << 20), "raw", 16},
		{"quantised weights", "auto", tensor.I8, skewed(1 << 20), "rans", 6.5},
		{"zeros", "auto", tensor.BF16, make([]byte, 4<<20), "zstd", 0.1},
		{"zeros", "auto", tensor.F8E4M3, make([]byte, 4<<20), "zstd", 0.1},
		{"few zeros", "auto", tensor.F32, make([]byte, 4000), "rans", 0.1},
		{"ones", "auto", tensor.BF16, constant, "zstd", 0.1},
		{"fewer ones", "auto", tensor.BF16, constant[:100000], "rans", 0.1},
		{"equal rows", "auto", tensor.BF16, rows, "zstd", 6},
		{"rows of zeros", "auto", tensor.BF16, sparse, "zstd", 3},
		{"indices", "auto", tensor.I64, indices(1 << 17), "zstd", 20},
		{"noise", "auto", tensor.BF16, noise(1 << 20), "raw", 16},
		{"noise", "auto", tensor.U8, noise(1 << 20), "raw", 8},
		{"noise", "rans", tensor.F32, noise(1 << 20), "raw", 32},
		{"noise", "zstd", tensor.U8, noise(1 << 20), "raw", 8},
		{"nothing", "auto", tensor.BF16, nil, "raw", 16},
		{"nothing", "rans", tensor.BF16, nil, "raw", 16},
		{"half a unit", "auto", tensor.F32, []byte{1, 2}, "raw", 32},
		{"unknown type", "auto", "F3_E9", skewed(1 << 20), "rans", 6.5},
	} {
		for _, level := range []codec.Level{codec.Default, codec.Fast, codec.Dense} {
			size := max(1, tc.unit.Bits()/8)
			sample, exact := codec.Sample(nil, tc.data, size)
			c, coder, err := codec.Choose(registry, tc.name, tc.unit, sample, exact, level)
			if err != nil {
				t.Fatalf("%s, %s: %v", tc.what, tc.unit, err)
			}
			if c.Name() != tc.want || coder.BitsPerUnit() > tc.bits {
				t.Errorf("%s, %s, level %d: %s with %.3f bits a unit, want %s with at most %.2f", tc.what, tc.unit, level,
					c.Name(), coder.BitsPerUnit(), tc.want, tc.bits)
			}
		}
	}
	if _, _, err := codec.Choose(registry, "lzma", tensor.U8, nil, true, codec.Default); !errors.Is(err, codec.ErrUnknown) {
		t.Errorf("a code that does not exist: %v", err)
	}
	if _, _, err := codec.Choose(codec.NewRegistry(rans.New()), "", tensor.U8, nil, true, codec.Default); !errors.Is(err, codec.ErrUnknown) {
		t.Errorf("a registry without raw: %v", err)
	}
}

func TestSample(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8} {
		for _, n := range []int{0, 1, 1024, 256<<10 - 1, 256 << 10, 256<<10 + 1, 3<<20 + 17, 16 << 20} {
			if size == 8 && n > 4<<20 {
				continue
			}
			seg := make([]byte, n*size)
			for i := 0; i < len(seg); i += 8 {
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], uint64(i))
				copy(seg[i:], b[:])
			}
			sample, exact := codec.Sample(make([]byte, 100), seg, size)
			if exact != (n <= 256<<10) || exact && !bytes.Equal(sample, seg) {
				t.Fatalf("%d units of %d bytes: exact is %v", n, size, exact)
			}
			if exact {
				continue
			}
			pieces, length := codec.SamplePlan(n)
			if len(sample) != pieces*length*size {
				t.Fatalf("%d units of %d bytes: sample of %d bytes", n, size, len(sample))
			}
			last := -1
			for i := range pieces {
				piece := sample[i*length*size : (i+1)*length*size]
				// The content tells where it comes from, once aligned to 8 bytes.
				k := 0
				for ; k < 8; k++ {
					at := int(binary.LittleEndian.Uint64(piece[k:]))
					if at%8 == 0 && at-k >= 0 && at-k+len(piece) <= len(seg) && bytes.Equal(piece, seg[at-k:at-k+len(piece)]) {
						if at -= k; at%(2*size) != 0 || at <= last {
							t.Fatalf("piece %d of %d units starts at byte %d, after %d", i, n, at, last)
						}
						last = at
						break
					}
				}
				if k == 8 {
					t.Fatalf("piece %d of %d units is nowhere in the segment", i, n)
				}
			}
			if last+length*size != len(seg)-len(seg)%(2*size) {
				t.Fatalf("the last piece of %d units ends at byte %d", n, last+length*size)
			}
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	registry := codec.NewRegistry(raw.New(), rans.New(), zstd.New())
	for _, tc := range []struct {
		name string
		unit tensor.DType
		data []byte
	}{{"bf16-16Mi", tensor.BF16, weights(16 << 20)}, {"bf16-1Mi", tensor.BF16, weights(1 << 20)}, {"bf16-16Ki", tensor.BF16, weights(16 << 10)}, {"bf16-300", tensor.BF16, weights(300)}, {"i8-1Mi", tensor.I8, skewed(1 << 20)}} {
		b.Run(tc.name, func(b *testing.B) {
			b.SetBytes(int64(len(tc.data)))
			var buf []byte
			for b.Loop() {
				sample, exact := codec.Sample(buf, tc.data, max(1, tc.unit.Bits()/8))
				if !exact {
					buf = sample
				}
				if _, _, err := codec.Choose(registry, "", tc.unit, sample, exact, codec.Default); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
