package store

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func writeFile(t testing.TB, n int) (string, []byte) {
	t.Helper()
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path, b
}

// files opens the same bytes in every way there is.
func files(t testing.TB, n int) (map[string]File, []byte) {
	path, b := writeFile(t, n)
	open, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := FromOSFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	spool, err := Spool("s", bytes.NewReader(b), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]File{
		"open": open, "os": borrowed, "spool": spool,
		"bytes": FromBytes("b", b), "reader": FromReaderAt("r", bytes.NewReader(b), int64(n)),
	}
	t.Cleanup(func() {
		for name, f := range m {
			if err := f.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		raw.Close()
	})
	return m, b
}

func TestMapReturnsTheBytes(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 3*4096 + 17} {
		fs, want := files(t, size)
		for name, f := range fs {
			t.Run(name, func(t *testing.T) {
				if f.Size() != int64(size) {
					t.Fatalf("size %d, want %d", f.Size(), size)
				}
				rapid.Check(t, func(t *rapid.T) {
					off := rapid.Int64Range(0, int64(size)).Draw(t, "off")
					n := rapid.Int64Range(0, int64(size)-off).Draw(t, "n")
					v, err := f.Map(off, n)
					if err != nil {
						t.Fatal(err)
					}
					b := v.Bytes()
					if !bytes.Equal(b, want[off:off+n]) {
						t.Fatalf("bytes %d+%d differ", off, n)
					}
					if cap(b) > len(b)+Slack+4096 {
						t.Fatalf("capacity %d beyond length %d", cap(b), len(b))
					}
					slack := b[:cap(b)]
					if inFile := want[off:min(off+int64(len(slack)), int64(size))]; !bytes.Equal(slack[:len(inFile)], inFile) {
						t.Fatal("slack inside the file is not the file's")
					}
					if err := v.Close(); err != nil {
						t.Fatal(err)
					}
					if err := v.Close(); err != nil || v.Bytes() != nil {
						t.Fatal("second Close", err)
					}
					p := make([]byte, n)
					if got, err := f.ReadAt(p, off); got != len(p) || err != nil && err != io.EOF || !bytes.Equal(p, want[off:off+n]) {
						t.Fatalf("ReadAt: %d, %v", got, err)
					}
				})
			})
		}
	}
}

func TestMapRefusesOutside(t *testing.T) {
	fs, _ := files(t, 100)
	for name, f := range fs {
		for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, 101}, {101, 0}, {100, 1}, {1, 1<<63 - 1}, {1<<63 - 1, 1<<63 - 1}} {
			if v, err := f.Map(r[0], r[1]); !errors.Is(err, ErrRange) {
				t.Errorf("%s: Map(%d, %d) = %v, %v", name, r[0], r[1], v, err)
			}
		}
	}
}

func TestViewOutlivesFile(t *testing.T) {
	path, want := writeFile(t, 10000)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.Map(5, 9000)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(v.Bytes(), want[5:9005]) {
		t.Fatal("bytes differ")
	}
}

func TestOpenRefusesDirectory(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotRegular) {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestReaderAtTooShort(t *testing.T) {
	f := FromReaderAt("short", bytes.NewReader(make([]byte, 10)), 20)
	if _, err := f.Map(5, 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if v, err := f.Map(5, 5); err != nil {
		t.Fatal(err)
	} else if len(v.Bytes()) != 5 {
		t.Fatal(len(v.Bytes()))
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestSpoolPassesErrorsAndLeavesNothing(t *testing.T) {
	dir, want := t.TempDir(), errors.New("lost")
	if _, err := Spool("s", io.MultiReader(bytes.NewReader(make([]byte, 100)), failing{want}), dir); !errors.Is(err, want) {
		t.Fatal(err)
	}
	f, err := Spool("s", bytes.NewReader(make([]byte, 100)), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatal(left)
	}
}
