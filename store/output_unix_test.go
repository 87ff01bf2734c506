//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode().Perm()
}

func commit(t *testing.T, path string, overwrite bool) {
	t.Helper()
	o, err := Create(path, overwrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	path := filepath.Join(t.TempDir(), "out")
	commit(t, path, false)
	if m := mode(t, path); m != 0o640 {
		t.Errorf("new file has mode %o", m)
	}
	for _, want := range []fs.FileMode{0o600, 0o666, 0o755} {
		if err := os.Chmod(path, want); err != nil {
			t.Fatal(err)
		}
		commit(t, path, true)
		if m := mode(t, path); m != want {
			t.Errorf("mode %o became %o", want, m)
		}
	}
}

func TestSymlinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	target, link := filepath.Join(other, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	// A link that leads nowhere is in the way like a file, and is replaced like one.
	if _, err := Create(link, false); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	commit(t, link, true)
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Fatal("the link was replaced")
	}
	if b, _ := os.ReadFile(target); string(b) != "new" {
		t.Fatalf("%q", b)
	}
	if l := names(t, other); len(l) != 1 {
		t.Fatal(l)
	}
}

func TestDevice(t *testing.T) {
	o, err := Create("/dev/null", false)
	if err != nil {
		t.Fatal(err)
	}
	if o.Regular() {
		t.Fatal("/dev/null is no regular file")
	}
	if _, err := o.Write([]byte("gone")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.File(); !errors.Is(err, ErrNotRegular) {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat("/dev/null"); err != nil || st.Mode()&fs.ModeDevice == 0 {
		t.Fatal("/dev/null is no device any more")
	}
}

func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrNotRegular) { // and does not wait for a writer
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(path)
		got <- string(b)
	}()
	o, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if b := <-got; b != "hello" {
		t.Fatalf("%q", b)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := FromOSFile(f); !errors.Is(err, ErrNotRegular) {
		t.Fatal(err)
	}
}

// TestLimit stands for a full disk where none can be had: the system refuses to let the file grow.
func TestLimit(t *testing.T) {
	if os.Getenv("STORE_TEST_LIMIT") == "" {
		rerun(t, "STORE_TEST_LIMIT=1")
		return
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limit := old
	limit.Cur = 1000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	o, err := Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Write(make([]byte, 5000))
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), path+":") || strings.Contains(err.Error(), tempMark) {
		t.Fatal(err)
	}
	if err := o.Abort(); err != nil {
		t.Fatal(err)
	}
	if l := names(t, dir); len(l) != 0 {
		t.Fatal(l)
	}
}

// rerun runs this test alone in a process of its own.
func rerun(t *testing.T, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestKilled kills a process in the middle of replacing a file. The old file stays as it was, and what is left beside it is
// recognisably temporary.
func TestKilled(t *testing.T) {
	if path := os.Getenv("STORE_TEST_KILLED"); path != "" {
		o, err := Create(path, true)
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := o.Write(make([]byte, 1<<16)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "STORE_TEST_KILLED="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(names(t, dir)) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process wrote nothing")
		}
	}
	time.Sleep(10 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Fatalf("%q, %v", b, err)
	}
	for _, name := range names(t, dir) {
		if name != "out" && !IsTemp(name) {
			t.Errorf("%s left behind", name)
		}
	}
}

// TestFaultInSystemCall hands mapped bytes that are gone to the kernel.
func TestFaultInSystemCall(t *testing.T) {
	path, _ := writeFile(t, 1<<20)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, err := f.Map(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	o, err := Create(filepath.Join(t.TempDir(), "out"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Abort()
	if _, err := o.WriteAt(v.Bytes(), 0); !errors.Is(err, ErrFault) {
		t.Error(err)
	}
	if _, err := o.Write(v.Bytes()); !errors.Is(err, ErrFault) {
		t.Error(err)
	}
}
