package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// zstd measures the general-purpose code that people use otherwise, at its level 3 with one thread, on the sample: the
// library that this command is built with, and the zstd command where it is installed.
func (m *measure) zstd([]int) error {
	if err := m.zstdLibrary(); err != nil {
		return err
	}
	path, err := exec.LookPath("zstd")
	if err != nil {
		return nil
	}
	return m.zstdCommand(path)
}

func (m *measure) zstdLibrary() error {
	// Literals of weights are skewed without repeats; zstd proper codes them at level 3, so this one is told to.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)), zstd.WithEncoderConcurrency(1),
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return err
	}
	defer enc.Close()
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer dec.Close()
	// Pieces, as a file is read: one call would keep the whole sample as its window.
	const piece = 8 << 20
	packed := make([][]byte, 0, len(m.plain)/piece+1)
	stored := 0
	row := benchRow{Name: "zstd -3 encode", Threads: 1, against: copyMemory, What: "klauspost/compress, sample in memory"}
	err = m.time(row, int64(len(m.plain)), func() error {
		packed, stored = packed[:0], 0
		for c := range slices.Chunk(m.plain, piece) {
			p := enc.EncodeAll(c, nil)
			packed, stored = append(packed, p), stored+len(p)
		}
		return m.ctx.Err()
	})
	if err != nil {
		return err
	}
	row.Ratio = ratio(int64(len(m.plain)), int64(stored))
	m.res.Rows[len(m.res.Rows)-1].Ratio = row.Ratio
	row.Name = "zstd -3 decode"
	buf := make([]byte, 0, piece)
	return m.time(row, int64(len(m.plain)), func() error {
		for _, p := range packed {
			if _, err := dec.DecodeAll(p, buf); err != nil {
				return err
			}
		}
		return m.ctx.Err()
	})
}

func (m *measure) zstdCommand(path string) error {
	plain, packed := filepath.Join(m.dir, "sample"), filepath.Join(m.dir, "sample.zst")
	if err := os.WriteFile(plain, m.plain, 0o666); err != nil {
		return err
	}
	command := func(args ...string) error {
		c := exec.CommandContext(m.ctx, path, args...)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", path, err, out)
		}
		return nil
	}
	row := benchRow{Name: "zstd -3 encode", Threads: 1, against: copyMemory, What: "the zstd command, file to file without fsync"}
	err := m.time(row, int64(len(m.plain)), func() error {
		return command("-3", "-T1", "--single-thread", "-q", "-f", "-o", packed, plain)
	})
	if err != nil {
		return err
	}
	st, err := os.Stat(packed)
	if err != nil {
		return err
	}
	row.Ratio = ratio(int64(len(m.plain)), st.Size())
	m.res.Rows[len(m.res.Rows)-1].Ratio = row.Ratio
	row.Name, row.What = "zstd -3 decode", "the zstd command, file to nowhere"
	return m.time(row, int64(len(m.plain)), func() error { return command("-t", "-q", packed) })
}
