//go:build unix

package store

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"testing"
)

var sink byte

// TestGuardShrunkFile truncates a mapped file and reads it in ways that fault in compiled Go, in memmove, and in
// vector assembly.
func TestGuardShrunkFile(t *testing.T) {
	const n = 1 << 20
	reads := map[string]func(b []byte){
		"loop": func(b []byte) {
			for _, x := range b {
				sink ^= x
			}
		},
		"copy":  func(b []byte) { copy(make([]byte, len(b)), b) },
		"equal": func(b []byte) { bytes.Equal(b, make([]byte, len(b))) },
		"index": func(b []byte) { bytes.IndexByte(b[n/2:], 1) },
		"crc":   func(b []byte) { crc32.ChecksumIEEE(b) },
		"short": func(b []byte) { copy(make([]byte, 7), b[n-7:]) },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/f"
			if err := os.WriteFile(path, make([]byte, n), 0o666); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			v, err := f.Map(0, n)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if err := Guard(func() error { read(v.Bytes()); return nil }); err != nil {
				t.Fatalf("whole file: %v", err)
			}
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
			if err := Guard(func() error { read(v.Bytes()); return nil }); !errors.Is(err, ErrFault) {
				t.Fatalf("shrunk file: %v", err)
			}
		})
	}
}
