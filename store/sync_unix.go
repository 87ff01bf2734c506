//go:build unix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncDir makes a rename in dir durable. Some file systems have nothing to sync in a directory and say so.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrPermission) {
		return nil // writable but not readable: the name is there, only its durability is the system's business
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
