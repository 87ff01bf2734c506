package store

import "golang.org/x/sys/unix"

// populate maps the pages of m. Kernels before 5.14 refuse, and the pages come one fault at a time.
func populate(m []byte) {
	if len(m) > 0 {
		_ = unix.Madvise(m, unix.MADV_POPULATE_READ)
	}
}

// WillNeed has the system begin to read n bytes at off, where they are not in memory. That it cannot is no error.
func (f *osFile) WillNeed(off, n int64) {
	_ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_WILLNEED)
}
