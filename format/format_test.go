package format

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	members := buildTo(t, &out, small())
	file := out.Bytes()
	d, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Members) != len(members) {
		t.Fatalf("%d members, want %d", len(d.Members), len(members))
	}
	for i := range members {
		if !reflect.DeepEqual(d.Members[i], members[i]) {
			t.Errorf("member %d:\n%+v, want\n%+v", i, d.Members[i], members[i])
		}
	}
	if err := check(file); err != nil {
		t.Fatal(err)
	}
	m := &d.Members[2]
	if !m.Header.Zstd {
		t.Error("the header of a member was not compressed")
	}
	h, err := m.Header.Decode(file[m.Header.Offset : m.Header.Offset+m.Header.StoredLen])
	if err != nil || !bytes.Equal(h, small()[2].header) {
		t.Errorf("header %q, %v", h, err)
	}
}

// TestTruncated cuts a file at every byte.
func TestTruncated(t *testing.T) {
	file := build(t, small())
	for n := range file {
		err := check(file[:n])
		if n < len(magic) && !errors.Is(err, ErrNotWcodec) && !errors.Is(err, ErrCorrupt) || n >= len(magic) && !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

// TestFlipped flips every bit of a file.
func TestFlipped(t *testing.T) {
	file := build(t, small())
	for i := range 8 * len(file) {
		file[i/8] ^= 1 << (i % 8)
		if err := check(file); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotWcodec) {
			t.Errorf("bit %d of byte %d: %v", i%8, i/8, err)
		}
		file[i/8] ^= 1 << (i % 8)
	}
}
