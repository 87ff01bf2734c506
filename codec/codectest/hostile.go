package codectest

import (
	"testing"

	"github.com/wcodec/wcodec/codec"
	"github.com/wcodec/wcodec/tensor"
)

// hostile damages tables and stored chunks in every small way. What is asked is only that nothing panics, nothing is
// written outside, and every error wraps codec.ErrCorrupt: a damaged chunk may decode to something, since finding that
// out is the checksum's work. A chunk that was cut short must fail.
func hostile(t *testing.T, c codec.Codec, unit tensor.DType) {
	s := new(codec.Scratch)
	size := Size(unit)
	for _, n := range []int{300, 257} {
		for _, level := range []codec.Level{codec.Default, codec.Dense} {
			data := mixed(unit, n)
			enc, err := c.Fit(unit, mixed(unit, 20*n), true, level)
			if !fits(t, "mixed", err) {
				continue
			}
			table := enc.AppendTable(nil)
			stored, err := enc.EncodeChunk(nil, data, s)
			if err != nil {
				stored = Random(n * size / 2)
			}
			damagedTables(t, c, unit, table, stored, n*size, s)
			dec, err := c.Parse(unit, table)
			if err != nil {
				t.Fatal(err)
			}
			for cut := range stored {
				if _, err := decode(t, dec, stored[:cut:cut], n*size, s); err == nil {
					t.Fatalf("chunk of %d bytes cut to %d decodes", len(stored), cut)
				}
			}
			damaged := make([]byte, len(stored))
			for bit := range 8 * len(stored) {
				copy(damaged, stored)
				damaged[bit/8] ^= 1 << (bit % 8)
				decode(t, dec, damaged, n*size, s)
			}
			for _, wrong := range []int{0, n / 2 * size, 2 * n * size, 32769 * size} {
				if _, err := decode(t, dec, stored, wrong, s); err == nil {
					t.Fatalf("chunk of %d bytes decodes to %d", n*size, wrong)
				}
			}
			for _, wrong := range []int{1, size, (n - 1) * size, n*size - 1, n*size + 1, (n + 1) * size} {
				decode(t, dec, stored, wrong, s) // may decode: a chunk does not say how long it is
			}
			for _, length := range []int{0, 1, 2, 3, 129, 130, 131, 1000, 70000} {
				decode(t, dec, Random(length), n*size, s)
				decode(t, dec, make([]byte, length), n*size, s)
				decode(t, dec, make([]byte, length), 0, s)
			}
		}
	}
}

func damagedTables(t *testing.T, c codec.Codec, unit tensor.DType, table, stored []byte, n int, s *codec.Scratch) {
	try := func(table []byte) {
		t.Helper()
		dec, err := parse(t, c, unit, table)
		if err != nil {
			return
		}
		decode(t, dec, stored, n, s)
	}
	for cut := range table {
		if _, err := parse(t, c, unit, table[:cut:cut]); err == nil {
			t.Fatalf("table of %d bytes cut to %d is accepted", len(table), cut)
		}
	}
	if _, err := parse(t, c, unit, append(table[:len(table):len(table)], 0)); err == nil {
		t.Fatal("table with a byte too many is accepted")
	}
	damaged := make([]byte, len(table))
	for bit := range 8 * len(table) {
		copy(damaged, table)
		damaged[bit/8] ^= 1 << (bit % 8)
		try(damaged)
	}
	for _, length := range []int{1, 2, 3, 4, 5, 36, 40, 100, 1000} {
		try(Random(length))
	}
}

// parse parses a table; its errors must wrap codec.ErrCorrupt, and what it accepts must be canonical.
func parse(t testing.TB, c codec.Codec, unit tensor.DType, table []byte) (codec.Coder, error) {
	t.Helper()
	dec, err := c.Parse(unit, table)
	if err != nil {
		if !isCorrupt(err) {
			t.Fatalf("error that is not ErrCorrupt: %v", err)
		}
		return nil, err
	}
	if string(dec.AppendTable(nil)) != string(table) {
		t.Fatalf("table %x is accepted and written as %x", table, dec.AppendTable(nil))
	}
	return dec, nil
}
