package rans

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

const segmentUnits = 16 << 20

// gaussian calls put with n normal values of deviation sigma.
func gaussian(n int, sigma float64, put func(i int, v float32)) {
	r := rand.New(rand.NewPCG(20, 26))
	for i := range n {
		put(i, float32(r.NormFloat64()*sigma))
	}
}

// toBF16 rounds to the nearest, ties to even.
func toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toSmall rounds to a float of exp and mant bits with subnormals, ties to even, saturating at the largest finite
// value.
func toSmall(v float32, exp, mant int, largest uint32) uint32 {
	sign := math.Float32bits(v) >> 31 << (exp + mant)
	x := math.Abs(float64(v))
	bias := 1<<(exp-1) - 1
	_, e := math.Frexp(x)
	e = max(e-1, 1-bias)
	q := math.RoundToEven(math.Ldexp(x, mant-e))
	code := uint32(q)
	if e > 1-bias || q >= float64(uint32(1)<<mant) {
		code = uint32(e+bias)<<mant + uint32(q) - 1<<mant
	}
	return sign | min(code, largest)
}

func bf16Gaussian(n int) []byte {
	b := make([]byte, 2*n)
	gaussian(n, 0.02, func(i int, v float32) { binary.LittleEndian.PutUint16(b[2*i:], toBF16(v)) })
	return b
}

// stored is the size of a segment in chunks of 32,768 units: its chunks, each rounded up to 16 bytes, 24 bytes each of
// index, and the table. Every chunk is decoded and compared.
func stored(t testing.TB, unit tensor.DType, seg []byte, level codec.Level) (int, codec.Coder) {
	size := unit.Bits() / 8
	sample, exact := codec.Sample(nil, seg, size)
	enc, err := New().Fit(unit, sample, exact, level)
	if err != nil {
		t.Fatal(err)
	}
	table := enc.AppendTable(nil)
	dec, err := New().Parse(unit, table)
	if err != nil {
		t.Fatal(err)
	}
	total := len(table)
	var s codec.Scratch
	var out []byte
	back := make([]byte, maxUnits*size)
	for len(seg) > 0 {
		part := seg[:min(maxUnits*size, len(seg))]
		seg = seg[len(part):]
		out, err = enc.EncodeChunk(out[:0], part, &s)
		if err != nil {
			t.Fatal(err)
		}
		total += len(out) + 24
		job := []codec.Job{{Dst: back[:len(part)], Src: out}}
		dec.DecodeChunks(job, &s)
		if job[0].Err != nil || !bytes.Equal(job[0].Dst, part) {
			t.Fatalf("chunk does not come back: %v", job[0].Err)
		}
	}
	return total, enc
}

func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("codes 16 Mi weights of each type")
	}
	n := segmentUnits
	bf16 := bf16Gaussian(n)
	f16 := make([]byte, 2*n)
	f16bf := make([]byte, 2*n)
	f32 := make([]byte, 4*n/2)
	f32bf := make([]byte, 4*n/2)
	f32f16 := make([]byte, 4*n/2)
	gaussian(n, 0.02, func(i int, v float32) {
		binary.LittleEndian.PutUint16(f16[2*i:], uint16(toSmall(v, 5, 10, 0x7bff)))
		b := math.Float32frombits(uint32(toBF16(v)) << 16)
		binary.LittleEndian.PutUint16(f16bf[2*i:], uint16(toSmall(b, 5, 10, 0x7bff)))
		if i < n/2 {
			binary.LittleEndian.PutUint32(f32[4*i:], math.Float32bits(v))
			binary.LittleEndian.PutUint32(f32bf[4*i:], math.Float32bits(b))
			binary.LittleEndian.PutUint32(f32f16[4*i:], math.Float32bits(v)&^(1<<13-1))
		}
	})
	e4m3, e5m2 := make([]byte, n), make([]byte, n)
	block := make([]float32, 128*128)
	for at := 0; at < n; at += len(block) {
		r := rand.New(rand.NewPCG(8, uint64(at)))
		amax := float32(0)
		for i := range block {
			block[i] = float32(r.NormFloat64())
			amax = max(amax, float32(math.Abs(float64(block[i]))))
		}
		for i, v := range block {
			e4m3[at+i] = byte(toSmall(v/amax*448, 4, 3, 0x7e))
			e5m2[at+i] = byte(toSmall(v/amax*57344, 5, 2, 0x7b))
		}
	}
	// Eight raw bits and the entropy of the exponent: what no code of single exponents can pass.
	var exps [256]float64
	for i := 0; i < len(bf16); i += 2 {
		exps[binary.LittleEndian.Uint16(bf16[i:])>>7&0xff]++
	}
	limit := 8.0
	for _, k := range exps {
		if k > 0 {
			limit -= k / float64(n) * math.Log2(k/float64(n))
		}
	}
	bits := map[string]float64{}
	for _, tc := range []struct {
		name  string
		unit  tensor.DType
		seg   []byte
		level codec.Level
		ratio float64
	}{
		{"BF16", tensor.BF16, bf16, codec.Default, 1.512},
		{"BF16", tensor.BF16, bf16, codec.Fast, 1.512},
		{"BF16", tensor.BF16, bf16, codec.Dense, 1.523},
		{"F16", tensor.F16, f16, codec.Default, 1.175},
		{"F16", tensor.F16, f16, codec.Dense, 1.185},
		{"F16 of BF16", tensor.F16, f16bf, codec.Default, 1.505},
		{"F16 of BF16", tensor.F16, f16bf, codec.Dense, 1.515},
		{"F32", tensor.F32, f32, codec.Default, 1.203},
		{"F32", tensor.F32, f32, codec.Dense, 1.203},
		{"F32 of BF16", tensor.F32, f32bf, codec.Default, 3.02},
		{"F32 of BF16", tensor.F32, f32bf, codec.Dense, 3.04},
		{"F32 of F16", tensor.F32, f32f16, codec.Default, 2.34},
		{"E4M3", tensor.F8E4M3, e4m3, codec.Default, 1.21},
		{"E4M3", tensor.F8E4M3, e4m3, codec.Dense, 1.225},
		{"E5M2", tensor.F8E5M2, e5m2, codec.Default, 1.43},
		{"E5M2", tensor.F8E5M2, e5m2, codec.Dense, 1.445},
	} {
		total, c := stored(t, tc.unit, tc.seg, tc.level)
		ratio := float64(len(tc.seg)) / float64(total)
		got := 8 * float64(total) / float64(len(tc.seg)/unitSize(tc.unit))
		bits[fmt.Sprint(tc.name, tc.level)] = got
		t.Logf("%-12s level %d mode %d: ratio %.4f, %.4f bits a unit, %.4f estimated", tc.name, tc.level, c.AppendTable(nil)[0],
			ratio, got, c.BitsPerUnit())
		if ratio < tc.ratio {
			t.Errorf("%s, level %d: ratio %.4f, want %.3f", tc.name, tc.level, ratio, tc.ratio)
		}
	}
	plain, dense := bits[fmt.Sprint("BF16", codec.Default)], bits[fmt.Sprint("BF16", codec.Dense)]
	t.Logf("order-0 limit %.4f bits; reached with %.3f%% more", limit, 100*(plain/limit-1))
	if plain > limit*1.004 {
		t.Errorf("BF16 takes %.4f bits, the limit is %.4f", plain, limit)
	}
	if dense > plain*0.995 {
		t.Errorf("dense BF16 takes %.4f bits, not 0.5%% less than %.4f", dense, plain)
	}
}
