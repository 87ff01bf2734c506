package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// startFlush has the system begin to write out what f has in memory. That it cannot is no error: Commit flushes all.
func startFlush(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}
