package synth

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wcodec/wcodec/store"
)

// blockSize is how many bytes a worker makes at a time; a run holds that much for each worker and no more.
const blockSize = 4 << 20

// Write makes a checkpoint in dir, which it creates if need be: the shards, a shard index where there are several,
// config.json and small files in place of the tokenizer's. It replaces files of the same names, each only when the new
// one is whole; the index and config.json come last. The bytes depend on o.Model, o.Layers, o.Shrink and o.Seed alone.
func Write(ctx context.Context, dir string, o Options) error {
	shards, c, err := plan(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	headers := make([][]byte, len(shards))
	p := progress{report: o.Progress}
	for i := range shards {
		if headers[i], err = shards[i].Header(); err != nil {
			return err
		}
		p.total += int64(len(headers[i])) + int64(shards[i].DataSize)
	}
	g := NewGenerator(o.Seed)
	for i := range shards {
		s := &shards[i]
		path := filepath.Join(dir, s.File)
		fill := func(dst []byte, at uint64) error { return g.FillShard(dst, s, at) }
		if err := writeFile(ctx, path, headers[i], evenCuts(s.DataSize), o.Workers, &p, fill); err != nil {
			return err
		}
	}
	if c == nil {
		return nil
	}
	return writeSideFiles(dir, shards, c)
}

// FillShard makes the len(dst) bytes of a shard's data section that begin at byte at. It fails with ErrRange where the
// shard has not so many.
func (g *Generator) FillShard(dst []byte, s *Shard, at uint64) error {
	if at > s.DataSize || uint64(len(dst)) > s.DataSize-at {
		return fmt.Errorf("synth: %d bytes at %d of %s, which has %d: %w", len(dst), at, s.File, s.DataSize, ErrRange)
	}
	i, _ := slices.BinarySearchFunc(s.Tensors, at, func(t Tensor, at uint64) int {
		return cmp.Or(cmp.Compare(t.Offset+t.Size, at), -1) // the first that ends beyond at
	})
	for ; len(dst) > 0; i++ {
		t := &s.Tensors[i]
		n := min(uint64(len(dst)), t.Offset+t.Size-at)
		if err := g.Fill(dst[:n], t, at-t.Offset); err != nil {
			return err
		}
		dst, at = dst[n:], at+n
	}
	return nil
}

// progress counts bytes for a caller's callback.
type progress struct {
	mu          sync.Mutex
	done, total int64
	report      func(done, total int64)
}

func (p *progress) add(n int) {
	if p.report == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	p.report(p.done, p.total)
}

// evenCuts cuts size bytes into blocks.
func evenCuts(size uint64) []uint64 {
	var cuts []uint64
	for at := uint64(0); at < size; at += blockSize {
		cuts = append(cuts, at)
	}
	return append(cuts, size)
}

// writeFile writes a file of header and the blocks that lie between the cuts, which fill makes on several goroutines.
func writeFile(ctx context.Context, path string, header []byte, cuts []uint64, workers int, p *progress,
	fill func(dst []byte, at uint64) error,
) error {
	out, err := store.Create(path, true)
	if err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	defer out.Abort()
	if _, err := out.WriteAt(header, 0); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	p.add(len(header))
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(cuts)-1) {
		wg.Go(func() {
			var buf []byte
			for i := next.Add(1); i < int64(len(cuts)) && ctx.Err() == nil; i = next.Add(1) {
				at := cuts[i-1]
				buf = slices.Grow(buf[:0], int(cuts[i]-at))[:cuts[i]-at]
				err := fill(buf, at)
				if err == nil {
					_, err = out.WriteAt(buf, int64(len(header))+int64(at))
				}
				if err != nil {
					cancel(err)
					return
				}
				p.add(len(buf))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("synth: %s: %w", path, err)
	}
	if err := out.Commit(); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	return nil
}
