//go:build !amd64 || noasm

package checksum

func accumulate(acc *[columns]uint64, b []byte) { accumulateGeneric(acc, b) }
