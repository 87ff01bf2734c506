//go:build !unix

package store

func (f *osFile) mapRange(off, n int64) (*View, error) {
	return readView(f.Name(), f.File, off, n, f.size)
}
