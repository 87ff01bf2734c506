package rans

import (
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/codec/codectest"
	"github.com/wcodec/wcodec/tensor"
)

func TestConformance(t *testing.T) { codectest.Run(t, New()) }

func FuzzRoundTrip(f *testing.F) { codectest.FuzzRoundTrip(f, New()) }

func FuzzDecode(f *testing.F) { codectest.FuzzDecode(f, New()) }

func BenchmarkCodec(b *testing.B) {
	for _, unit := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64, tensor.F8E4M3, tensor.I8, tensor.I32} {
		b.Run(string(unit), func(b *testing.B) { codectest.Bench(b, New(), unit, codec.Default) })
	}
	b.Run("BF16-dense", func(b *testing.B) { codectest.Bench(b, New(), tensor.BF16, codec.Dense) })
}
