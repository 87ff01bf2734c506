package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

type extractor struct {
	*app
	raw bool
}

func (a *app) extractCmd() *cobra.Command {
	x := &extractor{app: a}
	cmd := ignores(&cobra.Command{
		Use:   "extract [flags] IN TENSOR...",
		Short: "Take tensors out alone",
		Long: `extract writes the named tensors as a safetensors file, or with --raw one tensor as its bytes alone.
Only what they need is read and decoded. A TENSOR may be a pattern, such as 'model.layers.0.*'.

Without -o the output is TENSOR.safetensors (or TENSOR.bin) in the current directory; several tensors
need -o. -o may name a directory.`,
		Example: `  wcodec extract model.safetensors.wcodec lm_head.weight
  wcodec extract -o layer0.safetensors llama.wcodec 'model.layers.0.*'
  wcodec extract --raw -c model.safetensors.wcodec lm_head.weight | sha256sum`,
		Args: atLeast(2, "a packed file or directory and names of tensors"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return x.run(cmd.Context(), args[0], args[1:])
		},
	}, packFlags, []string{"rm", "keep"})
	cmd.Flags().BoolVar(&x.raw, "raw", false, "the bytes of one tensor, without a header")
	return cmd
}

// extractResult is what extract prints under --json.
type extractResult struct {
	head
	File       string        `json:"file"`
	Output     string        `json:"output,omitempty"`
	DryRun     bool          `json:"dry_run,omitempty"`
	Tensors    []string      `json:"tensors"`
	PlainBytes int64         `json:"plain_bytes"`
	Stats      *wcodec.Stats `json:"stats,omitempty"`
}

func (x *extractor) run(ctx context.Context, in string, names []string) error {
	if err := x.useDevice(); err != nil {
		return err
	}
	if x.stdout && !x.dryRun {
		if _, err := x.dataOut(); err != nil {
			return err
		}
	}
	ar, err := openArchive(ctx, in)
	if err != nil {
		return err
	}
	defer ar.Close()
	ts, err := ar.match(names)
	if err != nil {
		return err
	}
	if x.raw && len(ts) != 1 {
		return usagef("--raw takes one tensor, and the names mean %d", len(ts))
	}
	res := &extractResult{File: in, DryRun: x.dryRun, Tensors: []string{}}
	x.result = res
	for _, t := range ts {
		res.Tensors = append(res.Tensors, t.Name())
		res.PlainBytes += t.Size()
	}
	if !x.stdout {
		if res.Output, err = x.target(ts); err != nil {
			return err
		}
		if err := notItself(res.Output, in); err != nil {
			return err
		}
	}
	if x.dryRun {
		x.summary("would extract %s, %s", plural(len(ts), "tensor"), humanSize(res.PlainBytes))
		return nil
	}
	x.progress(res.PlainBytes)
	x.bar.file(in)
	var st wcodec.Stats
	if x.stdout {
		st, err = wcodec.Extract(ctx, struct{ io.Writer }{os.Stdout}, ts, x.raw, x.options())
	} else {
		st, err = wcodec.ExtractTo(ctx, res.Output, ts, x.raw, x.options())
	}
	if err != nil {
		return shortError(err)
	}
	res.Stats = &st
	to := res.Output
	if x.stdout {
		to = "standard output"
	}
	x.summary("%s -> %s: %s, %s, %s", in, to, plural(len(ts), "tensor"), humanSize(st.PlainBytes), humanTime(st.Wall))
	return nil
}

// target is the path of the output.
func (x *extractor) target(ts []*wcodec.Tensor) (string, error) {
	if x.out != "" && !isDir(x.out) {
		return x.out, nil
	}
	if len(ts) > 1 {
		return "", usagef("%d tensors make one file, which needs a name: give it with -o", len(ts))
	}
	name := ts[0].Name()
	if name == "" || strings.ContainsAny(name, "/\\\x00") || name != printable(name) || !filepath.IsLocal(name) {
		return "", usagef("tensor %q does not make a file name: give one with -o", name)
	}
	if x.raw {
		return x.fileTarget(name + ".bin")
	}
	return x.fileTarget(name + ".safetensors")
}
