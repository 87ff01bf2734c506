package main

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// canMount reports whether this process may mount a tmpfs, by mounting one.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "wcodec-mount-*")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if mountTmpfs(dir, "64k") != nil {
		return false
	}
	unmount(dir)
	return true
})

func mountTmpfs(dir, size string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size) }

func unmount(dir string) { unix.Unmount(dir, unix.MNT_DETACH) }
