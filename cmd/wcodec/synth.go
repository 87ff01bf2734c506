package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wcodec/wcodec"
	"github.com/wcodec/wcodec/synth"
)

// synthOptions are the flags that say what to generate.
type synthOptions struct{ synth.Options }

func (s *synthOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&s.Layers, "layers", 0, "make the first `N` layers only; 0: all")
	f.IntVar(&s.Shrink, "shrink", 1, "divide every dimension by `N`")
	f.Uint64Var(&s.Seed, "seed", 1, "start from seed `N`; the same seed gives the same bytes everywhere")
}

// plan resolves the options without making data: the paths below the directory, and the plain bytes.
func (s *synthOptions) plan() (files []string, total int64, err error) {
	shards, err := synth.Plan(s.Options)
	if errors.Is(err, synth.ErrModel) || errors.Is(err, synth.ErrRange) {
		return nil, 0, usageError{errors.New(strings.TrimPrefix(err.Error(), "synth: "))}
	}
	if err != nil {
		return nil, 0, err
	}
	for i := range shards {
		files = append(files, shards[i].File)
		total += int64(shards[i].DataSize)
	}
	return files, total, nil
}

func (a *app) synthCmd() *cobra.Command {
	s := &synthOptions{}
	cmd := ignores(&cobra.Command{
		Use:   "synth [flags] --model MODEL -o DIR",
		Short: "Make a realistic synthetic checkpoint",
		Long: `synth writes a checkpoint with the names, shapes and types of a public model and values whose
statistics are those of trained weights. Nothing is downloaded. The same options give the same bytes
on every machine.

Models: ` + strings.Join(synth.Models(), ", ") + `.`,
		Example: "  wcodec synth --model llama-3-8b --layers 2 -o llama\n  wcodec synth --model deepseek-fp8 --layers 4 --shrink 8 -o small",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.synth(cmd.Context(), s) },
	}, packFlags, []string{"rm", "keep", "stdout"})
	cmd.Flags().StringVar(&s.Model, "model", "", "the `MODEL` to make, one of those above")
	s.flags(cmd.Flags())
	completeWith(cmd, "model", synth.Models()...)
	return cmd
}

// synthResult is what synth prints under --json.
type synthResult struct {
	head
	Model   string   `json:"model"`
	Layers  int      `json:"layers"`
	Shrink  int      `json:"shrink"`
	Seed    uint64   `json:"seed"`
	Output  string   `json:"output"`
	DryRun  bool     `json:"dry_run,omitempty"`
	Files   []string `json:"files"`
	Bytes   int64    `json:"tensor_bytes"`
	Seconds float64  `json:"seconds"`
}

func (a *app) synth(ctx context.Context, s *synthOptions) error {
	if s.Model == "" {
		return usagef("say what to make with --model: %s", strings.Join(synth.Models(), ", "))
	}
	if a.stdout || a.out == "" {
		return usagef("name a directory with -o")
	}
	files, total, err := s.plan()
	if err != nil {
		return err
	}
	res := &synthResult{
		Model: s.Model, Layers: s.Layers, Shrink: s.Shrink, Seed: s.Seed, Output: a.out, DryRun: a.dryRun, Files: files, Bytes: total,
	}
	a.result = res
	if a.dryRun {
		a.summary("%s: would make %s of tensors in %s", a.out, humanSize(total), plural(len(files), "file"))
		return nil
	}
	for _, f := range files {
		p := filepath.Join(a.out, f)
		if _, err := os.Lstat(p); !a.force && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", p, wcodec.ErrExists)
		}
	}
	begin := time.Now()
	a.progress(total)
	a.bar.file(a.out)
	if err := a.generate(ctx, s, a.out); err != nil {
		return err
	}
	wall := time.Since(begin)
	res.Seconds = wall.Seconds()
	a.summary("%s: made %s of tensors in %s, %s, %s", a.out, humanSize(total), plural(len(files), "file"), humanTime(wall),
		humanRate(total, wall))
	return nil
}

// generate writes the checkpoint into dir and moves the bar.
func (a *app) generate(ctx context.Context, s *synthOptions, dir string) error {
	o := s.Options
	o.Workers = a.workers
	o.Progress = func(done, total int64) { a.bar.update(wcodec.Progress{Done: done, Total: total}) }
	return synth.Write(ctx, dir, o)
}
