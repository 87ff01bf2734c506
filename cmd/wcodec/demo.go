package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
	"github.com/wcodec/wcodec/synth"
)

func (a *app) demoCmd() *cobra.Command {
	d := &demo{app: a, size: 256 << 20}
	cmd := ignores(&cobra.Command{
		Use:   "demo [flags]",
		Short: "The whole story on generated data in under a minute",
		Long: `demo makes small checkpoints with the statistics of trained ones, packs them, looks inside, gives them
back, compares every byte, and shows that one flipped bit is found. It works in a temporary directory,
which it removes. A table at the end has the sizes and the speeds on this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}, outputFlags, packFlags)
	cmd.Flags().Var(&d.size, "size", "about how much data to make for the first model")
	return cmd
}

type demo struct {
	*app
	size sizeFlag
	dir  string
	rows []demoRow
}

// demoRow is one model's line in the table at the end.
type demoRow struct {
	Model       string  `json:"model"`
	PlainBytes  int64   `json:"plain_bytes"`
	StoredBytes int64   `json:"stored_bytes"`
	Ratio       float64 `json:"ratio"`
	Compress    float64 `json:"compress_bytes_per_second"`
	Test        float64 `json:"test_bytes_per_second"`
	Decompress  float64 `json:"decompress_bytes_per_second"`
	Identical   bool    `json:"identical"`
	FlipFound   bool    `json:"flipped_bit_found"`
}

type demoResult struct {
	head
	Models  []demoRow `json:"models"`
	Seconds float64   `json:"seconds"`
}

// demoModels are what the demo packs, each at most a part of the size.
var demoModels = []struct {
	name, note string
	part       int64
}{
	{"llama-3-8b", "BF16", 1},
	{"llama-2-7b", "F16 that was BF16", 2},
	{"deepseek-fp8", "FP8 with block scales", 2},
}

func (d *demo) say(format string, args ...any) {
	if d.quiet == 0 && !d.json {
		d.bar.clear()
		fmt.Printf(format+"\n", args...)
	}
}

func (d *demo) run(ctx context.Context) (err error) {
	d.stdout = false
	if err := d.useDevice(); err != nil {
		return err
	}
	begin := time.Now()
	if d.dir, err = os.MkdirTemp("", "wcodec-demo-*"); err != nil {
		return err
	}
	defer func() {
		if rerr := os.RemoveAll(d.dir); err == nil {
			err = rerr
		}
	}()
	for i, m := range demoModels {
		if err := d.model(ctx, m.name, m.note, int64(d.size)/m.part, i == 0); err != nil {
			return err
		}
	}
	d.result = &demoResult{Models: d.rows, Seconds: time.Since(begin).Seconds()}
	if d.json {
		return nil
	}
	return d.table(time.Since(begin))
}

// fitShrink finds the model's smallest shrink that stays within size.
func fitShrink(model string, size int64) (*synthOptions, int64, error) {
	for shrink := 1; ; shrink++ {
		s := &synthOptions{synth.Options{Model: model, Layers: 2, Shrink: shrink, Seed: 1}}
		_, total, err := s.plan()
		if err != nil {
			return nil, 0, err
		}
		if total <= size || shrink == 256 {
			return s, total, nil
		}
	}
}

// model tells the story of one model.
func (d *demo) model(ctx context.Context, name, note string, size int64, whole bool) error {
	s, total, err := fitShrink(name, size)
	if err != nil {
		return err
	}
	plain, back := filepath.Join(d.dir, name), filepath.Join(d.dir, name+"-back")
	packed := plain + ext
	d.say("\n$ wcodec synth --model %s --layers %d --shrink %d -o %s", name, s.Layers, s.Shrink, name)
	d.progress(total)
	if err := d.generate(ctx, s, plain); err != nil {
		return err
	}
	d.say("  a checkpoint with the shapes and statistics of %s (%s): %s", name, note, humanSize(total))
	row := demoRow{Model: name}

	d.say("$ wcodec compress %s", name)
	d.progress(total)
	st, err := wcodec.CompressDir(ctx, packed, plain, d.options())
	if err != nil {
		return err
	}
	row.PlainBytes, row.StoredBytes, row.Ratio = st.PlainBytes, st.StoredBytes, ratio(st.PlainBytes, st.StoredBytes)
	row.Compress = perSecond(st.PlainBytes, st.Wall)
	d.say("  %s", sizes(st.PlainBytes, st.StoredBytes, st.Wall))

	if whole {
		if err := d.look(ctx, packed, name+ext); err != nil {
			return err
		}
	}

	d.say("$ wcodec test %s", name+ext)
	p, err := wcodec.OpenDir(packed)
	if err != nil {
		return err
	}
	d.progress(total)
	if st, err = p.Test(ctx, d.options()); err != nil {
		return err
	}
	row.Test = perSecond(st.PlainBytes, st.Wall)
	d.say("  every checksum holds, %s", humanRate(st.PlainBytes, st.Wall))

	d.say("$ wcodec decompress -o %s %s", filepath.Base(back), name+ext)
	d.progress(total)
	if st, err = wcodec.DecompressDir(ctx, back, packed, d.options()); err != nil {
		return err
	}
	row.Decompress = perSecond(st.PlainBytes, st.Wall)
	if row.Identical, err = d.compare(plain, back); err != nil {
		return err
	}
	if !row.Identical {
		return fmt.Errorf("%s: what came back differs from the original", name)
	}
	if row.FlipFound, err = d.flip(ctx, p, packed); err != nil {
		return err
	}
	if !row.FlipFound {
		return fmt.Errorf("%s: a flipped bit was not found", name)
	}
	d.rows = append(d.rows, row)
	for _, dir := range []string{plain, packed, back} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// look lists the packed checkpoint and reads one tensor alone.
func (d *demo) look(ctx context.Context, packed, shown string) error {
	ar, err := openArchive(ctx, packed)
	if err != nil {
		return err
	}
	defer ar.Close()
	l := &lister{app: d.app}
	res, err := l.collect(ar)
	if err != nil {
		return err
	}
	d.say("$ wcodec list %s", shown)
	if d.quiet == 0 && !d.json {
		if err := l.print(os.Stdout, res); err != nil {
			return err
		}
	}
	t := ar.tensors()[0]
	begin := time.Now()
	b, err := t.Read(ctx)
	if err != nil {
		return err
	}
	d.say("$ wcodec extract %s %s\n  one tensor alone: %s in %s", shown, t.Name(), humanSize(int64(len(b))), humanTime(time.Since(begin)))
	return nil
}

// compare holds every file of one directory against the file of its name in the other, by SHA-256.
func (d *demo) compare(a, b string) (same bool, err error) {
	same = true
	err = filepath.WalkDir(a, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(a, p)
		if err != nil {
			return err
		}
		x, err := sha(p)
		if err != nil {
			return err
		}
		y, err := sha(filepath.Join(b, rel))
		if err != nil {
			return err
		}
		if filepath.Ext(p) == ".safetensors" {
			d.say("  %s  %s\n  %s  the same after the way there and back", x[:32], rel, y[:32])
		}
		same = same && x == y
		return nil
	})
	return same, err
}

func sha(p string) (string, error) {
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// flip flips one bit in the middle of a packed file and reports whether a test finds it.
func (d *demo) flip(ctx context.Context, p *wcodec.Dir, packed string) (found bool, err error) {
	for _, f := range p.Files() {
		if f.How != wcodec.HowPacked {
			continue
		}
		at, bit := f.StoredSize/3+rand.Int64N(f.StoredSize/3), rand.IntN(8)
		if err := flipBit(filepath.Join(packed, f.Stored), at, bit); err != nil {
			return false, err
		}
		r, err := wcodec.Open(filepath.Join(packed, f.Stored))
		if err == nil {
			_, err = r.Test(ctx, wcodec.Options{Workers: d.workers})
			r.Close()
		}
		d.say("flip bit %d of byte %d and test again:\n  %v", bit, at, err)
		if cancelled(err) {
			return false, err
		}
		return errors.Is(err, wcodec.ErrCorrupt), nil
	}
	return false, errors.New("no packed file to damage")
}

func flipBit(path string, at int64, bit int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], at); err != nil {
		return err
	}
	return f.Close()
}

func (d *demo) table(wall time.Duration) error {
	d.say("\n%s, %s\n", d.cpu().describe(), humanTime(wall))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "model\tplain\tstored\tratio\tcompress\ttest\tdecompress\tsame bytes\tflipped bit\t")
	for _, r := range d.rows {
		rate := func(v float64) string { return humanRate(int64(v), time.Second) }
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3f\t%s\t%s\t%s\t%s\t%s\t\n", r.Model, humanSize(r.PlainBytes), humanSize(r.StoredBytes),
			r.Ratio, rate(r.Compress), rate(r.Test), rate(r.Decompress), "yes", "found")
	}
	return w.Flush()
}
