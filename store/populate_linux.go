package store

import "golang.org/x/sys/unix"

// populate maps the pages of m. Kernels before 5.14 refuse, and the pages come one fault at a time.
func populate(m []byte) {
	if len(m) > 0 {
		_ = unix.Madvise(m, unix.MADV_POPULATE_READ)
	}
}
