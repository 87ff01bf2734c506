package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskFull fills a small tmpfs, which takes the right to mount one.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	o, err := Create(path, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(0); err == nil && i < 100; i++ {
		_, err = o.WriteAt(make([]byte, 1<<16), i<<16)
	}
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), path+": no space left") {
		t.Fatal(err)
	}
	if err := o.Abort(); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" || len(names(t, dir)) != 1 {
		t.Fatalf("%q %v", b, names(t, dir))
	}
}

// TestNoPermission creates an output as somebody who may not. Root puts off its rights for one thread, which ends with the
// goroutine that is locked to it.
func TestNoPermission(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "out")
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				result <- err
				return
			}
		}
		_, err := Create(path, true)
		result <- err
	}()
	if err := <-result; !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), tempMark) {
		t.Fatal(err)
	}
}

// TestCannotMap reads a file of a kind that cannot be mapped.
func TestCannotMap(t *testing.T) {
	f, err := Open("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	want := make([]byte, 16)
	if _, err := f.ReadAt(want, 0); err != nil && err != io.EOF {
		t.Skip(err)
	}
	v, err := f.Map(2, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if string(v.Bytes()) != string(want[2:12]) {
		t.Fatalf("%q", v.Bytes())
	}
	if _, err := f.Map(0, f.Size()); !errors.Is(err, io.ErrUnexpectedEOF) { // it says 4096 and has fewer
		t.Fatal(err)
	}
}
