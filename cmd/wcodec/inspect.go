package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

func (a *app) inspectCmd() *cobra.Command {
	return ignores(&cobra.Command{
		Use:   "inspect [flags] IN TENSOR",
		Short: "Show how one tensor is stored, against its entropy",
		Long: `inspect decodes one tensor and shows its code and tables, its tiles and chunks, the entropy of its
fields against the bits that were reached, and a histogram of its exponents.`,
		Example: "  wcodec inspect model.safetensors.wcodec model.layers.0.mlp.up_proj.weight",
		Args:    exactly(2, "a packed file or directory and the name of a tensor"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspect(cmd.Context(), args[0], args[1])
		},
	}, outputFlags, packFlags)
}

// inspectResult is what inspect prints under --json.
type inspectResult struct {
	head
	File  string  `json:"file"`
	Ratio float64 `json:"ratio"`
	*wcodec.Inspection
}

func (a *app) inspect(ctx context.Context, in, name string) error {
	a.stdout = false
	if err := a.useDevice(); err != nil {
		return err
	}
	ar, err := openArchive(ctx, in)
	if err != nil {
		return err
	}
	defer ar.Close()
	t, err := ar.find(name)
	if err != nil {
		return err
	}
	x, err := t.Inspect(ctx)
	if err != nil {
		return err
	}
	a.result = &inspectResult{File: in, Ratio: ratio(x.PlainBytes, x.Stored), Inspection: x}
	if a.json {
		return nil
	}
	return printInspection(os.Stdout, x)
}

func printInspection(out io.Writer, x *wcodec.Inspection) error {
	var b strings.Builder
	field := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	field("tensor", "%s", printable(x.Name))
	field("type", "%s %s", printable(x.DType), shapeText(x.Shape))
	field("size", "%d bytes plain, %d stored, ratio %.3f", x.PlainBytes, x.Stored, ratio(x.PlainBytes, x.Stored))
	field("digest", "%s", x.Digest)
	if x.TileRows > 0 {
		field("tiles", "%d x %d elements, chunks of %d", x.TileRows, x.TileCols, x.ChunkUnits)
	} else {
		field("chunks", "%d elements of %s each", x.ChunkUnits, x.Unit)
	}
	for i, s := range x.Segments {
		field(fmt.Sprintf("segment %d", i), "%s%s: %d bytes to %d at offset %d, table %d bytes", s.Code, described(s.Parameters),
			s.Plain, s.Stored, s.Offset, s.Table)
		field("", "%s of %d to %d bytes, %d of them stored raw", plural(s.Chunks, "chunk"), s.Smallest, s.Largest, s.RawChunks)
	}
	if x.Units > 0 {
		printBits(field, x)
	}
	if len(x.Exponents) > 0 {
		printHistogram(&b, x.Exponents)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func described(parameters string) string {
	if parameters == "" {
		return ""
	}
	return " (" + parameters + ")"
}

// printBits sets what was reached against the entropies.
func printBits(field func(string, string, ...any), x *wcodec.Inspection) {
	field("bits", "%.3f of %d reached for each %s, everything counted", x.Reached, 8*x.PlainBytes/x.Units, x.Unit)
	field("", "%.3f is the entropy of the bytes, each by itself", x.ByteEntropy)
	if len(x.Exponents) > 0 {
		field("", "%.3f is the entropy of the exponents (%.3f) with sign and mantissa raw: reached %+.2f%%",
			x.FieldLimit, x.ExponentEntropy, 100*(x.Reached/x.FieldLimit-1))
	}
}

// barWidth is the length of the longest bar of a histogram, and mostRows how many exponents it shows.
const (
	barWidth = 50
	mostRows = 40
)

// printHistogram draws one bar for each exponent between the smallest and the largest that occur; where these are too
// many, neighbours share a bar.
func printHistogram(b *strings.Builder, counts []uint64) {
	lo, hi, total, most := -1, -1, uint64(0), uint64(0)
	for e, n := range counts {
		if n > 0 {
			if lo < 0 {
				lo = e
			}
			hi = e
			total += n
		}
	}
	if lo < 0 {
		return
	}
	step := (hi-lo)/mostRows + 1
	rows := make([]uint64, (hi-lo)/step+1)
	for e := lo; e <= hi; e++ {
		rows[(e-lo)/step] += counts[e]
		most = max(most, rows[(e-lo)/step])
	}
	fmt.Fprintf(b, "\n%9s  share of the elements\n", "exponent")
	for i, n := range rows {
		label := fmt.Sprint(lo + i*step)
		if step > 1 {
			label = fmt.Sprintf("%d-%d", lo+i*step, min(hi, lo+(i+1)*step-1))
		}
		fmt.Fprintf(b, "%9s %s\n", label, strings.TrimRight(fmt.Sprintf("%8.4f%% %s", 100*float64(n)/float64(total), drawBar(n, most)), " "))
	}
}

// drawBar draws n of most in eighths of a cell.
func drawBar(n, most uint64) string {
	eighths := int(float64(n) / float64(most) * barWidth * 8)
	bar := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[r-1])
	}
	if bar == "" && n > 0 {
		bar = "▏"
	}
	return bar
}
