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

// packer is the compress verb.
type packer struct {
	*app
	bundle, blob, trailing, links bool
	name                          string
}

func (a *app) compressCmd() *cobra.Command {
	p := &packer{app: a}
	cmd := &cobra.Command{
		Use:   "compress [flags] IN...",
		Short: "Pack files and checkpoint directories",
		Long: `compress writes X.wcodec beside each input X.

A safetensors file is packed tensor by tensor; any other file is taken as plain bytes. A directory
becomes a directory: weights are packed one by one, everything else is copied, and the index
` + wcodec.IndexName + ` is written last. An interrupted run is resumed by running it again:
packed files that match their originals are kept. --bundle packs all of it into one file instead.

With one input -o names the output (for a file also the directory to put it in). With several it
names a directory. "-" reads standard input and, without -o, writes standard output.`,
		Example: `  wcodec compress model.safetensors
  wcodec compress -o packed/ llama/
  wcodec compress --bundle -o llama.wcodec llama/
  wcodec compress --level dense -T 8 --rm model.safetensors
  cat model.safetensors | wcodec compress --name model.safetensors - > model.safetensors.wcodec`,
		Args: atLeast(1, "files or directories to pack"),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.BoolVar(&p.bundle, "bundle", false, "pack all inputs into one file")
	f.BoolVar(&p.blob, "blob", false, "take every input as plain bytes")
	f.BoolVar(&p.trailing, "keep-trailing", false, "keep bytes after the last tensor instead of refusing the file")
	f.BoolVarP(&p.links, "follow-links", "L", false, "take what symbolic links in a directory point to")
	f.StringVar(&p.name, "name", stdinName, "`NAME` that what comes on standard input gets")
	return cmd
}

func (p *packer) options() wcodec.Options {
	o := p.app.options()
	o.Blob, o.KeepTrailing, o.FollowLinks = p.blob, p.trailing, p.links
	return o
}

func (p *packer) run(ctx context.Context, args []string) error {
	total, err := p.check(args)
	if err != nil {
		return err
	}
	if err := p.useDevice(); err != nil {
		return err
	}
	p.progress(total)
	change := "packed"
	if p.dryRun {
		change = "would pack"
	}
	if p.bundle {
		return p.each([]string{strings.Join(args, " ")}, change, func(_ string, f *fileResult) error {
			return p.bundled(ctx, args, f)
		})
	}
	return p.each(args, change, func(in string, f *fileResult) error { return p.one(ctx, in, len(args) > 1, f) })
}

// check looks at all inputs before the first is touched, and returns their plain bytes, or -1.
func (p *packer) check(args []string) (total int64, err error) {
	if !p.bundle {
		if err := p.several(args); err != nil {
			return 0, err
		}
	}
	for _, in := range args {
		k, err := kindOf(in)
		if err != nil {
			continue // said when its turn comes
		}
		if k == kindDir && p.stdout && !p.bundle {
			return 0, usagef("%s is a directory and standard output is one file: add --bundle", in)
		}
		if k == kindFile && strings.EqualFold(filepath.Ext(in), ext) && !p.blob {
			return 0, usagef("%s is packed already; --blob packs it once more", in)
		}
		n := p.size(in, k)
		if n < 0 || total < 0 {
			total = -1
		} else {
			total += n
		}
	}
	return total, nil
}

// size is the plain size of an input, or -1.
func (p *packer) size(in string, k kind) int64 {
	switch k {
	case kindFile:
		if st, err := os.Stat(in); err == nil {
			return st.Size()
		}
	case kindDir:
		n := int64(0)
		files, err := wcodec.ScanDir(in, p.options())
		if err != nil {
			return -1
		}
		for _, f := range files {
			n += f.Size
		}
		return n
	}
	return -1
}

// one packs one input.
func (p *packer) one(ctx context.Context, in string, several bool, f *fileResult) error {
	k, err := kindOf(in)
	if err != nil {
		return err
	}
	switch {
	case k == kindDir:
		return p.dir(ctx, in, several, f)
	case k == kindStream:
		return p.stream(ctx, in, f)
	case p.stdout || p.dryRun:
		return p.toWriter(ctx, []string{in}, f)
	}
	out, err := p.fileTarget(in + ext)
	if err != nil {
		return err
	}
	if err := notItself(out, in); err != nil {
		return err
	}
	f.Output = out
	st, err := wcodec.CompressFile(ctx, out, []string{in}, p.options())
	f.stats(st)
	if err != nil {
		return shortError(err)
	}
	return p.removeInput(in)
}

// stream packs standard input or a pipe, whose output goes to standard output where nothing else is said.
func (p *packer) stream(ctx context.Context, in string, f *fileResult) error {
	name := p.name
	if in != "-" {
		name = filepath.Base(in)
	}
	if p.out == "" && in == "-" {
		p.stdout = true
	}
	var w io.Writer = io.Discard
	if p.stdout && !p.dryRun {
		out, err := p.dataOut()
		if err != nil {
			return err
		}
		w = out
	}
	r, size, err := openStream(ctx, in)
	if err != nil {
		return err
	}
	srcs := []wcodec.Source{{Name: name, Reader: r, Size: size}}
	var st wcodec.Stats
	if p.stdout || p.dryRun {
		st, err = wcodec.Compress(ctx, w, srcs, p.options())
	} else {
		if f.Output, err = p.fileTarget(in + ext); err != nil {
			return err
		}
		if in == "-" && isDir(p.out) {
			f.Output = filepath.Join(p.out, name+ext)
		}
		st, err = wcodec.CompressTo(ctx, f.Output, srcs, p.options())
	}
	f.stats(st)
	return err
}

// toWriter packs files to standard output, or to nowhere in a dry run.
func (p *packer) toWriter(ctx context.Context, paths []string, f *fileResult) error {
	var w io.Writer = io.Discard
	if !p.dryRun {
		out, err := p.dataOut()
		if err != nil {
			return err
		}
		w = out
	}
	srcs, err := openAll(paths, nil)
	defer closeAll(srcs)
	if err != nil {
		return err
	}
	st, err := wcodec.Compress(ctx, w, srcs, p.options())
	f.stats(st)
	return err
}

// openAll opens files as sources; names gives their member names, nil the base names.
func openAll(paths, names []string) (srcs []wcodec.Source, err error) {
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return srcs, shortError(err)
		}
		name := filepath.Base(path)
		if names != nil {
			name = names[i]
		}
		srcs = append(srcs, wcodec.Source{Name: name, Reader: f, Size: -1})
	}
	return srcs, nil
}

func closeAll(srcs []wcodec.Source) {
	for _, s := range srcs {
		s.Reader.(*os.File).Close()
	}
}

// dir packs a checkpoint directory into a directory.
func (p *packer) dir(ctx context.Context, in string, several bool, f *fileResult) error {
	if p.dryRun {
		return p.dryDir(ctx, in, f)
	}
	abs, err := filepath.Abs(in) // "." and ".." have no name of their own
	if err != nil {
		return err
	}
	beside := filepath.Clean(in) + ext
	if base := filepath.Base(in); base == "." || base == ".." {
		beside = abs + ext
	}
	out, err := p.dirTarget(beside, several)
	if err != nil {
		return err
	}
	f.Output = out
	st, err := wcodec.CompressDir(ctx, out, in, p.options())
	f.dirStats(st)
	if err != nil {
		return err
	}
	d, err := wcodec.OpenDir(out)
	if err != nil {
		return err
	}
	return p.removeFiles(in, d.Files())
}

// dryDir says what packing a directory would give.
func (p *packer) dryDir(ctx context.Context, in string, f *fileResult) error {
	files, err := wcodec.ScanDir(in, p.options())
	if err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(in, filepath.FromSlash(file.Name))
		switch file.How {
		case wcodec.HowCopied:
			f.Copied++
			f.PlainBytes += file.Size
			f.StoredBytes += file.Size
		case wcodec.HowPacked:
			p.bar.file(file.Name)
			f.Packed++
			one := fileResult{}
			if err := p.toWriter(ctx, []string{path}, &one); err != nil {
				return err
			}
			f.Tensors += one.Tensors
			f.PlainBytes += one.PlainBytes
			f.StoredBytes += one.StoredBytes
		}
	}
	return nil
}

// bundled packs all inputs into one file.
func (p *packer) bundled(ctx context.Context, args []string, f *fileResult) error {
	var paths, names []string
	for _, in := range args {
		k, err := kindOf(in)
		switch {
		case err != nil:
			return err
		case k == kindStream:
			return usagef("%s: --bundle takes files and directories", in)
		case k == kindFile:
			paths, names = append(paths, in), append(names, filepath.Base(in))
			continue
		}
		files, err := wcodec.ScanDir(in, p.options())
		if err != nil {
			return err
		}
		for _, file := range files {
			if file.How != wcodec.HowDir {
				paths = append(paths, filepath.Join(in, filepath.FromSlash(file.Name)))
				names = append(names, file.Name)
			}
		}
	}
	seen := make(map[string]string)
	for i, name := range names {
		if other := seen[name]; other != "" {
			return usagef("%s and %s would both be %s in the bundle", other, paths[i], name)
		}
		seen[name] = paths[i]
	}
	srcs, err := openAll(paths, names)
	defer closeAll(srcs)
	if err != nil {
		return err
	}
	var st wcodec.Stats
	switch {
	case p.dryRun:
		st, err = wcodec.Compress(ctx, io.Discard, srcs, p.options())
	case p.stdout:
		var w *os.File
		if w, err = p.dataOut(); err != nil {
			return err
		}
		st, err = wcodec.Compress(ctx, w, srcs, p.options())
	default:
		if f.Output, err = p.bundleTarget(args); err != nil {
			return err
		}
		if err = notItself(f.Output, paths...); err != nil {
			return err
		}
		st, err = wcodec.CompressTo(ctx, f.Output, srcs, p.options())
	}
	f.stats(st)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := p.removeInput(path); err != nil {
			return err
		}
	}
	for _, in := range args {
		p.removeEmpty(in)
	}
	return nil
}

// bundleTarget is the output path of a bundle.
func (p *packer) bundleTarget(args []string) (string, error) {
	if len(args) > 1 && (p.out == "" || isDir(p.out)) {
		return "", usagef("a bundle of %d inputs needs a name: give it with -o", len(args))
	}
	abs, err := filepath.Abs(args[0])
	if err != nil {
		return "", err
	}
	beside := filepath.Clean(args[0]) + ext
	if base := filepath.Base(args[0]); base == "." || base == ".." {
		beside = abs + ext
	}
	out, err := p.fileTarget(beside)
	if st, serr := os.Stat(out); err == nil && serr == nil && st.IsDir() {
		return "", usagef("%s is a directory already: name the bundle with -o", out)
	}
	return out, err
}
