package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		list = append(list, e.Name())
	}
	return list
}

func TestOutputAppearsAtCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	o, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.WriteAt([]byte("there"), 5); err != nil {
		t.Fatal(err)
	}
	if l := names(t, dir); len(l) != 1 || !IsTemp(l[0]) || IsTemp("out") || !strings.Contains(l[0], "out") {
		t.Fatal(l)
	}
	f, err := o.File()
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.Map(3, 4)
	if err != nil || string(v.Bytes()) != "loth" {
		t.Fatal(err)
	}
	v.Close()
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := o.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if l := names(t, dir); len(l) != 1 || l[0] != "out" {
		t.Fatal(l)
	}
	if b, _ := os.ReadFile(path); string(b) != "hellothere" {
		t.Fatalf("%q", b)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	o, err := Create(path, true)
	if err != nil {
		t.Fatal(err)
	}
	o.Write([]byte("new"))
	for range 2 {
		if err := o.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" || len(names(t, dir)) != 1 {
		t.Fatalf("%q %v", b, names(t, dir))
	}
}

func TestCreateRefusesExisting(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
	if _, err := Create(dir, true); !errors.Is(err, ErrNotRegular) {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(dir, "no", "out"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if l := names(t, dir); len(l) != 1 {
		t.Fatal(l)
	}
}

// TestOneWinner has many writers race for one name. Exactly one gets it, and the content is that one's, whole.
func TestOneWinner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	var wg sync.WaitGroup
	const n = 20
	errs := make([]error, n)
	outs := make([]*Output, n)
	for i := range outs {
		o, err := Create(path, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(bytes.Repeat([]byte{byte(i)}, 1000)); err != nil {
			t.Fatal(err)
		}
		outs[i] = o
	}
	for i, o := range outs {
		wg.Go(func() { errs[i] = o.Commit() })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("both %d and %d won", winner, i)
		case !errors.Is(err, ErrExists):
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(path); winner < 0 || !bytes.Equal(b, bytes.Repeat([]byte{byte(winner)}, 1000)) {
		t.Fatalf("winner %d, content differs", winner)
	}
	if l := names(t, dir); len(l) != 1 {
		t.Fatal(l)
	}
}

func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("ä", 127))
	o, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if l := names(t, dir); len(l) != 1 || l[0] != filepath.Base(path) {
		t.Fatal(l)
	}
}

// TestLargeOutput writes in pieces, enough to have the system flush in between, and in any order.
func TestLargeOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	_, want := writeFile(t, 3*flushBytes+12345)
	o, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	const piece = 1 << 20
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for off := w * piece; off < len(want); off += 4 * piece {
				if _, err := o.WriteAt(want[off:min(off+piece, len(want))], int64(off)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes differ, %v", len(got), err)
	}
}

func TestPublishWithoutHardLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out")
	noLinks := func(from, to string) error {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: errors.ErrUnsupported}
	}
	temp := func(content string) string {
		path := filepath.Join(dir, "temp")
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := publish(temp("first"), target, noLinks); err != nil {
		t.Fatal(err)
	}
	if err := publish(temp("second"), target, noLinks); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(target); string(b) != "first" {
		t.Fatalf("%q", b)
	}
}
