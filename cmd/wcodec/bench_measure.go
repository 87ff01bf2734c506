package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/wcodec/wcodec"
)

// measure carries the measurements of one bench.
type measure struct {
	*bencher
	ctx   context.Context
	res   *benchResult
	files []string
	dir   string
	plain []byte // the sample
	cores int
}

func (m *measure) all() error {
	for _, f := range m.files {
		st, err := os.Stat(f)
		if err != nil {
			return shortError(err)
		}
		m.res.PlainBytes += st.Size()
	}
	if m.res.PlainBytes == 0 {
		return errNothing
	}
	if err := m.readSample(); err != nil {
		return err
	}
	m.cores = m.res.CPU.Threads
	many := []int{1}
	if m.cores > 1 {
		many = append(many, m.cores)
	}
	for _, step := range []func([]int) error{m.copies, m.encode, m.decode, m.zstd, m.whole} {
		if err := step(many); err != nil {
			return err
		}
	}
	return nil
}

// readSample loads the end of the largest file, which is tensor data, not headers.
func (m *measure) readSample() error {
	largest, size := "", int64(-1)
	for _, f := range m.files {
		if st, err := os.Stat(f); err == nil && st.Size() > size {
			largest, size = f, st.Size()
		}
	}
	f, err := os.Open(largest)
	if err != nil {
		return shortError(err)
	}
	defer f.Close()
	n := min(size, max(1, int64(m.sample)))
	m.plain = make([]byte, n)
	m.res.SampleBytes = n
	_, err = io.ReadFull(io.NewSectionReader(f, size-n, n), m.plain)
	return err
}

// time runs do, which handles n plain bytes, as often as asked and adds a row with the median.
func (m *measure) time(row benchRow, n int64, do func() error) error {
	if m.wantsBar() {
		fmt.Fprintf(os.Stderr, "\r%s, %s...\x1b[K", row.Name, plural(row.Threads, "thread"))
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	for range m.reps {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		begin := time.Now()
		if err := do(); err != nil {
			return err
		}
		row.Runs = append(row.Runs, perSecond(n, time.Since(begin)))
	}
	sorted := slices.Sorted(slices.Values(row.Runs))
	row.BytesPerSec = sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		row.BytesPerSec = (row.BytesPerSec + sorted[len(sorted)/2-1]) / 2
	}
	for _, c := range m.res.Rows {
		if c.Name == row.against && (c.Threads == row.Threads || c.Name == copyDisk) {
			row.OfCopy = row.BytesPerSec / c.BytesPerSec
		}
	}
	m.res.Rows = append(m.res.Rows, row)
	return nil
}

// The copies that other rows are set against: in memory with as many threads, or from disk to disk.
const (
	copyMemory = "copy"
	copyDisk   = "copy file"
)

const toDisk = "disk to disk with fsync, cache warm"

// copies measures what no codec can pass: the memory, and the disk.
func (m *measure) copies(many []int) error {
	dst := make([]byte, len(m.plain))
	copy(dst, m.plain) // the pages are there before the clock runs
	for _, n := range many {
		err := m.time(benchRow{Name: copyMemory, Threads: n, What: "memory to memory"}, int64(len(m.plain)), func() error {
			var wait sync.WaitGroup
			for i := range n {
				lo, hi := len(dst)*i/n, len(dst)*(i+1)/n
				wait.Go(func() { copy(dst[lo:hi], m.plain[lo:hi]) })
			}
			wait.Wait()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return m.time(benchRow{Name: copyDisk, Threads: 1, What: toDisk}, m.res.PlainBytes, func() error {
		for _, f := range m.files {
			if err := copyFile(backName(m.dir, f), f); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyFile(dst, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

func (m *measure) encode(many []int) error {
	for _, n := range many {
		err := m.time(benchRow{Name: "encode", Threads: n, against: copyMemory, What: "mapped files to nowhere"}, m.res.PlainBytes, func() error {
			for _, f := range m.files {
				if err := m.encodeFile(f, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *measure) encodeFile(f string, threads int) error {
	srcs, err := openAll([]string{f}, nil)
	defer closeAll(srcs)
	if err != nil {
		return err
	}
	_, err = wcodec.Compress(m.ctx, io.Discard, srcs, m.threads(threads))
	return err
}

// decode measures Test, which decodes everything and checks every checksum besides. The packed files stay for later.
func (m *measure) decode(many []int) error {
	for _, f := range m.files {
		st, err := wcodec.CompressFile(m.ctx, outName(m.dir, f), []string{f}, m.threads(0))
		if err != nil {
			return shortError(err)
		}
		m.res.StoredBytes += st.StoredBytes
	}
	m.res.Ratio = ratio(m.res.PlainBytes, m.res.StoredBytes)
	for i := range m.res.Rows {
		if m.res.Rows[i].Name == "encode" {
			m.res.Rows[i].Ratio = m.res.Ratio
		}
	}
	for _, n := range many {
		row := benchRow{Name: "decode", Threads: n, against: copyMemory, Ratio: m.res.Ratio, What: "test: mapped files, all checksums"}
		err := m.time(row, m.res.PlainBytes, func() error {
			for _, f := range m.files {
				r, err := wcodec.Open(outName(m.dir, f))
				if err != nil {
					return err
				}
				_, err = r.Test(m.ctx, m.threads(n))
				r.Close()
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whole measures whole files, all threads, from disk to disk.
func (m *measure) whole([]int) error {
	row := benchRow{Name: "compress", Threads: m.cores, against: copyDisk, Ratio: m.res.Ratio, What: toDisk}
	err := m.time(row, m.res.PlainBytes, func() error {
		for _, f := range m.files {
			if _, err := wcodec.CompressFile(m.ctx, outName(m.dir, f), []string{f}, m.threads(m.cores)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	row = benchRow{Name: "decompress", Threads: m.cores, against: copyDisk, Ratio: m.res.Ratio, What: toDisk}
	return m.time(row, m.res.PlainBytes, func() error {
		for _, f := range m.files {
			if _, err := wcodec.DecompressFile(m.ctx, backName(m.dir, f), outName(m.dir, f), m.threads(m.cores)); err != nil {
				return err
			}
		}
		return nil
	})
}
