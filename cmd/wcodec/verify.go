package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

func (a *app) verifyCmd() *cobra.Command {
	return ignores(&cobra.Command{
		Use:   "verify [flags] IN ORIGINAL",
		Short: "Compare the decoded bytes with an original",
		Long: `verify decodes IN and compares it, byte by byte, with ORIGINAL: a packed file with the original
file, a bundle or a packed directory with the original directory. It exits 1 where they differ.`,
		Example: "  wcodec verify model.safetensors.wcodec model.safetensors",
		Args:    exactly(2, "a packed file or directory and the original"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.verify(cmd.Context(), args[0], args[1])
		},
	}, outputFlags, packFlags)
}

func (a *app) verify(ctx context.Context, packed, original string) error {
	a.stdout = false
	if packed == "-" && original == "-" {
		return usagef("standard input can be read once only")
	}
	if err := a.useDevice(); err != nil {
		return err
	}
	a.progress(packedSize(packed))
	return a.each([]string{packed}, "same as "+original, func(_ string, f *fileResult) error {
		k, err := kindOf(packed)
		if err != nil {
			return err
		}
		if k == kindDir {
			d, err := openDir(packed)
			if err != nil {
				return err
			}
			st, err := d.Verify(ctx, original, a.options())
			f.dirStats(st)
			return err
		}
		r, err := openPacked(ctx, packed)
		if err != nil {
			return err
		}
		defer r.Close()
		f.members(r)
		if k, err = kindOf(original); err != nil {
			return err
		}
		if k != kindDir {
			if n := len(r.Members()); n != 1 {
				return usagef("%s holds %s: compare it with a directory", packed, plural(n, "file"))
			}
			return a.verifyMember(ctx, r.Members()[0], original, f)
		}
		if err := sameNames(packed, r, original); err != nil {
			return err
		}
		for _, m := range r.Members() {
			a.bar.file(m.Name())
			if err := a.verifyMember(ctx, m, filepath.Join(original, filepath.FromSlash(m.Name())), f); err != nil {
				return err
			}
		}
		return nil
	})
}

// sameNames makes sure that a directory has no file that a bundle lacks; the other way round, opening it says so.
func sameNames(packed string, r *wcodec.Reader, original string) error {
	files, err := wcodec.ScanDir(original, wcodec.Options{FollowLinks: true})
	if err != nil {
		return err
	}
	there := make(map[string]bool)
	for _, m := range r.Members() {
		there[m.Name()] = true
	}
	for _, f := range files {
		if f.How != wcodec.HowDir && !there[f.Name] {
			return fmt.Errorf("%s: lacks %s, which %s has: %w", packed, f.Name, original, wcodec.ErrMismatch)
		}
	}
	return nil
}

func (a *app) verifyMember(ctx context.Context, m *wcodec.Member, original string, f *fileResult) error {
	k, err := kindOf(original)
	if err != nil {
		return err
	}
	var orig *spooled
	switch k {
	case kindDir:
		return fmt.Errorf("%s: is a directory, want the file %s", original, m.Name())
	case kindStream:
		orig, err = spool(ctx, original)
	default:
		orig, err = openFile(original)
	}
	if err != nil {
		return err
	}
	defer orig.Close()
	_, err = m.Verify(ctx, orig, orig.size, a.options())
	return err
}

// openFile opens a regular file in the shape of a spooled one.
func openFile(path string) (*spooled, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, shortError(err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &spooled{File: f, size: st.Size(), name: path}, nil
}
