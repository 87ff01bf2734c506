package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) testCmd() *cobra.Command {
	return ignores(&cobra.Command{
		Use:   "test [flags] IN...",
		Short: "Decode and check every checksum, write nothing",
		Long: `test decodes each packed file or directory and checks every checksum, over stored and over decoded
bytes, and all padding: one flipped bit anywhere is found. It writes and removes nothing.`,
		Example: "  wcodec test model.safetensors.wcodec",
		Args:    atLeast(1, "packed files or directories"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.test(cmd.Context(), args) },
	}, outputFlags, packFlags)
}

func (a *app) test(ctx context.Context, args []string) error {
	a.stdout = false
	if err := a.useDevice(); err != nil {
		return err
	}
	total := int64(0)
	for _, in := range args {
		if n := packedSize(in); n < 0 || total < 0 {
			total = -1
		} else {
			total += n
		}
	}
	a.progress(total)
	return a.each(args, "intact", func(in string, f *fileResult) error {
		k, err := kindOf(in)
		if err != nil {
			return err
		}
		if k == kindDir {
			d, err := openDir(in)
			if err != nil {
				return err
			}
			st, err := d.Test(ctx, a.options())
			f.dirStats(st)
			return err
		}
		r, err := openPacked(ctx, in)
		if err != nil {
			return err
		}
		defer r.Close()
		st, err := r.Test(ctx, a.options())
		f.stats(st)
		return err
	})
}
