package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

type bencher struct {
	*app
	synth  synthOptions
	reps   int
	sample sizeFlag
}

func (a *app) benchCmd() *cobra.Command {
	b := &bencher{app: a, sample: 128 << 20}
	cmd := ignores(&cobra.Command{
		Use:   "bench [flags] [IN | --synthetic MODEL]",
		Short: "Measure this machine on a file",
		Long: `bench measures encoding and decoding on one core and on all of them, whole files from disk to disk,
and, in the same run, zstd at level 3 and plain copies. IN is a safetensors file or any other; without
it a synthetic checkpoint is made. Every figure is the median of --reps runs, in bytes of weights a
second. Files are written to a temporary directory (-o names where) and removed.`,
		Example: "  wcodec bench model.safetensors\n  wcodec bench --synthetic llama-3-8b --layers 2 --json",
		Args:    between(0, 1, "one file at most"),
		RunE:    func(cmd *cobra.Command, args []string) error { return b.run(cmd.Context(), args) },
	}, []string{"stdout", "force", "keep", "rm", "dry-run"})
	f := cmd.Flags()
	f.StringVar(&b.synth.Model, "synthetic", "llama-3-8b", "the `MODEL` to make where no file is given")
	b.synth.flags(f)
	f.IntVar(&b.reps, "reps", 3, "run each measurement `N` times and take the median")
	f.Var(&b.sample, "sample", "how much of the file zstd and the copies in memory get")
	return cmd
}

// benchRow is one measurement.
type benchRow struct {
	Name        string    `json:"name"`
	Threads     int       `json:"threads"`
	BytesPerSec float64   `json:"plain_bytes_per_second"` // median
	Runs        []float64 `json:"runs"`                   // all of them, in order
	OfCopy      float64   `json:"of_copy,omitempty"`      // as a part of what copying the same bytes the same way gives
	Ratio       float64   `json:"ratio,omitempty"`
	What        string    `json:"what"`

	against string // name of the copy for OfCopy
}

type benchResult struct {
	head
	Version     string     `json:"version"`
	Go          string     `json:"go"`
	System      string     `json:"system"`
	CPU         device     `json:"cpu"`
	Input       string     `json:"input"`
	PlainBytes  int64      `json:"plain_bytes"`
	StoredBytes int64      `json:"stored_bytes"`
	Ratio       float64    `json:"ratio"`
	SampleBytes int64      `json:"sample_bytes"`
	Level       string     `json:"level"`
	Codec       string     `json:"codec"`
	Rows        []benchRow `json:"rows"`
}

func (b *bencher) run(ctx context.Context, args []string) (err error) {
	b.stdout = false
	if b.reps < 1 {
		return usagef("--reps %d: at least one", b.reps)
	}
	if err := b.useDevice(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.out, "wcodec-bench-*")
	if err != nil {
		return shortError(err)
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	res := &benchResult{
		Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: b.cpu(), Level: b.level, Codec: b.codec,
	}
	b.result = res
	files := args
	if len(args) == 0 {
		if files, err = b.make(ctx, dir, res); err != nil {
			return err
		}
	} else {
		res.Input = args[0]
		if k, err := kindOf(args[0]); err != nil {
			return err
		} else if k != kindFile {
			return usagef("%s: bench takes a file", args[0])
		}
	}
	m := &measure{bencher: b, ctx: ctx, res: res, files: files, dir: dir}
	if err := m.all(); err != nil {
		return err
	}
	if b.json {
		return nil
	}
	return res.print()
}

// make generates the synthetic checkpoint and returns its safetensors files.
func (b *bencher) make(ctx context.Context, dir string, res *benchResult) ([]string, error) {
	names, total, err := b.synth.plan()
	if err != nil {
		return nil, err
	}
	res.Input = fmt.Sprintf("synthetic %s, layers %d (0: all), shrink %d, seed %d", b.synth.Model, b.synth.Layers, b.synth.Shrink, b.synth.Seed)
	b.progress(total)
	b.bar.file("making " + b.synth.Model)
	src := filepath.Join(dir, "plain")
	if err := b.generate(ctx, &b.synth, src); err != nil {
		return nil, err
	}
	b.bar.clear()
	b.bar = nil
	files := make([]string, len(names))
	for i, n := range names {
		files[i] = filepath.Join(src, n)
	}
	return files, nil
}

func (r *benchResult) print() error {
	fmt.Printf("wcodec %s, %s, %s\n%s\n%s: %s plain, %s stored, ratio %.4f\n\n", r.Version, r.Go, r.System, r.CPU.describe(),
		printable(r.Input), humanSize(r.PlainBytes), humanSize(r.StoredBytes), r.Ratio)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tTHREADS\tSPEED\tOF COPY\tRATIO\tWHAT")
	for _, row := range r.Rows {
		of, rat := "", ""
		if row.OfCopy > 0 {
			of = fmt.Sprintf("%.2f", row.OfCopy)
		}
		if row.Ratio > 0 {
			rat = fmt.Sprintf("%.3f", row.Ratio)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", row.Name, row.Threads, humanRate(int64(row.BytesPerSec), time.Second), of, rat, row.What)
	}
	return w.Flush()
}

// errNothing is for inputs on which no speed can be measured.
var errNothing = errors.New("the input is empty: nothing to measure")

// outName is the packed name of an input in the bench's directory.
func outName(dir, file string) string { return filepath.Join(dir, filepath.Base(file)+ext) }

// backName is the name of what is unpacked again.
func backName(dir, file string) string {
	return filepath.Join(dir, "back-"+strings.TrimSuffix(filepath.Base(file), ext))
}

// threads are the options with a number of threads and without a bar.
func (b *bencher) threads(n int) wcodec.Options {
	o := b.options()
	o.Workers, o.Overwrite, o.Progress = n, true, nil
	return o
}
