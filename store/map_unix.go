//go:build unix

package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// mapRange maps the pages that hold n bytes at off and the slack behind them. Bytes between the end of the file and
// the end of its last page read as zeros, so they serve as slack too.
func (f *osFile) mapRange(off, n int64) (*View, error) {
	lead := off % pageSize
	fileEnd := (f.size + pageSize - 1) / pageSize * pageSize
	end := min(off+n+Slack, fileEnd)
	base := off - lead
	if int64(int(end-base)) != end-base {
		return nil, fmt.Errorf("%s: %d bytes do not fit the address space: %w", f.Name(), n, ErrRange)
	}
	m, err := unix.Mmap(int(f.Fd()), base, int(end-base), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		// Some file systems cannot map.
		return readView(f.Name(), f.File, off, n, f.size)
	}
	v := NewView(m[lead:lead+n:end-base], func() error { return unix.Munmap(m) })
	v.mapped = m
	return v, nil
}
