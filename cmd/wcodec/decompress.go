package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

func (a *app) decompressCmd() *cobra.Command {
	return ignores(&cobra.Command{
		Use:   "decompress [flags] IN...",
		Short: "Give back the original files, byte for byte",
		Long: `decompress writes X for each input X.wcodec.

A file that holds one member becomes that file; a bundle of several becomes a directory; a packed
checkpoint directory becomes the original directory. With one input -o names the output; for a
bundle and for a directory that is the directory itself. With several inputs -o names the directory
that takes all outputs. "-" reads standard input and, without -o, writes standard output.`,
		Example: `  wcodec decompress model.safetensors.wcodec
  wcodec decompress -o llama/ llama.wcodec
  curl -s https://example.org/model.safetensors.wcodec | wcodec decompress - > model.safetensors`,
		Args: atLeast(1, "packed files or directories"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.decompress(cmd.Context(), args) },
	}, packFlags)
}

func (a *app) decompress(ctx context.Context, args []string) error {
	if err := a.several(args); err != nil {
		return err
	}
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
	change := "unpacked"
	if a.dryRun {
		change = "would unpack"
	} else {
		a.progress(total)
	}
	return a.each(args, change, func(in string, f *fileResult) error {
		k, err := kindOf(in)
		if err != nil {
			return err
		}
		if k == kindDir {
			return a.unpackDir(ctx, in, len(args) > 1, f)
		}
		return a.unpack(ctx, in, k, len(args) > 1, f)
	})
}

// packedSize is the plain size of a packed file or directory, or -1 where it cannot be told yet.
func packedSize(in string) int64 {
	k, err := kindOf(in)
	if err != nil || k == kindStream {
		return -1
	}
	if k == kindDir {
		d, err := wcodec.OpenDir(in)
		if err != nil {
			return -1
		}
		return d.Size()
	}
	r, err := wcodec.Open(in)
	if err != nil {
		return -1
	}
	defer r.Close()
	return membersSize(r.Members())
}

func membersSize(ms []*wcodec.Member) int64 {
	n := int64(0)
	for _, m := range ms {
		n += m.Size()
	}
	return n
}

// unpack gives back one packed file.
func (a *app) unpack(ctx context.Context, in string, k kind, several bool, f *fileResult) error {
	if k == kindStream && a.out == "" {
		a.stdout = true
	}
	if a.stdout && !a.dryRun {
		if _, err := a.dataOut(); err != nil {
			return err
		}
	}
	if _, err := stripped(in); err != nil && a.out == "" && !a.stdout {
		return err
	}
	r, err := openPacked(ctx, in)
	if err != nil {
		return err
	}
	defer r.Close()
	ms := r.Members()
	if a.stdout {
		return a.unpackStdout(ctx, in, r, f)
	}
	target := a.fileTarget
	if len(ms) != 1 {
		target = func(beside string) (string, error) { return a.dirTarget(beside, several) }
	}
	beside, err := stripped(in)
	switch {
	case err == nil:
	case k == kindStream && len(ms) == 1:
		beside = ms[0].Name()
	case a.out != "" && (!isDir(a.out) || len(ms) != 1):
		beside = in // not used: -o names the output
	case a.out != "":
		beside = filepath.Base(ms[0].Name())
	default:
		return err
	}
	if f.Output, err = target(beside); err != nil {
		return err
	}
	if err := notItself(f.Output, in); err != nil {
		return err
	}
	if a.dryRun {
		f.members(r)
		return nil
	}
	var st wcodec.Stats
	if len(ms) == 1 {
		st, err = ms[0].DecompressTo(ctx, f.Output, a.options())
	} else {
		st, err = r.ExtractAll(ctx, f.Output, a.options())
	}
	f.stats(st)
	f.StoredBytes = r.Size()
	if err != nil {
		return shortError(err)
	}
	return a.removeInput(in)
}

// members fills in what the directory of a packed file says of it.
func (f *fileResult) members(r *wcodec.Reader) {
	f.Members, f.Tensors = len(r.Members()), len(r.Tensors())
	f.PlainBytes, f.StoredBytes = membersSize(r.Members()), r.Size()
}

func (a *app) unpackStdout(ctx context.Context, in string, r *wcodec.Reader, f *fileResult) error {
	if n := len(r.Members()); n != 1 {
		return usagef("%s holds %s: name a directory for them with -o", in, plural(n, "file"))
	}
	if a.dryRun {
		f.members(r)
		return nil
	}
	st, err := r.Members()[0].Decompress(ctx, struct{ io.Writer }{os.Stdout}, a.options())
	f.stats(st)
	f.StoredBytes = r.Size()
	return err
}

// unpackDir gives back a checkpoint directory.
func (a *app) unpackDir(ctx context.Context, in string, several bool, f *fileResult) error {
	if a.stdout {
		return usagef("%s is a directory and standard output is one file", in)
	}
	d, err := openDir(in)
	if err != nil {
		return err
	}
	var beside string
	if a.out == "" || several {
		if beside, err = stripped(in); err != nil {
			return err
		}
	}
	if f.Output, err = a.dirTarget(beside, several); err != nil {
		return err
	}
	if a.dryRun {
		f.dir(d)
		return nil
	}
	st, err := wcodec.DecompressDir(ctx, f.Output, in, a.options())
	f.dirStats(st)
	if err != nil || !a.rm {
		return err
	}
	stored := []wcodec.DirFile{{Name: wcodec.IndexName}}
	for _, file := range d.Files() {
		if file.How == wcodec.HowPacked {
			file.Name = file.Stored
		}
		stored = append(stored, file)
	}
	return a.removeFiles(in, stored)
}

// openDir opens a packed checkpoint directory and says what is wrong with one that has no index.
func openDir(path string) (*wcodec.Dir, error) {
	d, err := wcodec.OpenDir(path)
	if os.IsNotExist(err) {
		return nil, hinted{
			fmt.Errorf("%s: no %s in it", path, wcodec.IndexName),
			"it is no packed checkpoint, or packing it was interrupted: run wcodec compress again",
		}
	}
	return d, err
}

// dir fills in what the index of a packed directory says of it.
func (f *fileResult) dir(d *wcodec.Dir) {
	for _, file := range d.Files() {
		f.PlainBytes += file.Size
		switch file.How {
		case wcodec.HowPacked:
			f.Packed++
			f.StoredBytes += file.StoredSize
		case wcodec.HowCopied:
			f.Copied++
			f.StoredBytes += file.Size
		}
	}
	f.Tensors = len(d.WeightMap())
}

func (f *fileResult) dirStats(st wcodec.DirStats) {
	f.stats(st.Stats)
	f.Packed, f.Copied, f.Resumed = st.Packed, st.Copied, st.Resumed
}
