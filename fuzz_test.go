package wcodec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/wcodec/wcodec/tensor"
)

// FuzzRoundTrip compresses anything, as a checkpoint where it is one, and wants it back.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte("not a checkpoint"), uint8(1))
	f.Add(build(f, plain{"w", tensor.BF16, []uint64{10, 20}, normal(tensor.BF16, 200, 0.02, 1)}), uint8(2))
	f.Add(build(f, plain{"a", tensor.F32, []uint64{33}, normal(tensor.F32, 33, 1, 1)}, plain{"b", "NEW", []uint64{3}, []byte{1}}), uint8(7))
	f.Fuzz(func(t *testing.T, b []byte, how uint8) {
		if len(b) > 4096 {
			return
		}
		o := Options{Workers: 1, Level: Level(how % 3), KeepTrailing: how&4 != 0, Codec: Codecs()[int(how>>4)%len(Codecs())]}
		name := "x"
		if how&8 != 0 {
			name = "x.safetensors"
		}
		var packed bytes.Buffer
		if _, err := Compress(t.Context(), &packed, []Source{{name, bytes.NewReader(b), int64(len(b))}}, o); err != nil {
			if !errors.Is(err, ErrCorrupt) || how&8 == 0 && !errors.Is(err, ErrTrailing) {
				t.Fatal(err)
			}
			return
		}
		r := open(t, packed.Bytes())
		if _, err := r.Test(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := r.Members()[0].Decompress(t.Context(), &got, o); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), b) {
			t.Fatal("bytes differ")
		}
	})
}

// FuzzReader reads anything that the container lets through: no panic, and errors that say what they are.
func FuzzReader(f *testing.F) {
	f.Add(small(f))
	f.Add(pack(f, "b", noise(600, 1), Options{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 8192 {
			return
		}
		r, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			_, err = r.Test(t.Context(), Options{Workers: 1})
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
	})
}
