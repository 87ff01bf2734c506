//go:build amd64 && !noasm

package rans

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fence returns n bytes that begin, or end, where memory does that may be touched.
func fence(t testing.TB, n int, begin bool) []byte {
	page := os.Getpagesize()
	whole := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, whole+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	for _, edge := range [][]byte{m[:page], m[page+whole:]} {
		if err := unix.Mprotect(edge, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if begin {
		return m[page : page+n : page+n]
	}
	return m[page+whole-n : page+whole : page+whole]
}

// cpuTime is how long this thread has run.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
