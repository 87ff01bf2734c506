package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

type lister struct {
	*app
	all     bool
	minSize sizeFlag
}

func (a *app) listCmd() *cobra.Command {
	l := &lister{app: a}
	cmd := ignores(&cobra.Command{
		Use:   "list [flags] IN",
		Short: "Show the tensors inside, without reading their data",
		Long: `list shows every tensor of a packed file or directory: type, shape, code, sizes, ratio. It reads the
directory of the file alone. Tensors whose names differ in numbers only, as those of layers do, share
a line with a count and # for the numbers, where they have type, shape and code in common; --all gives
each its own.`,
		Example: "  wcodec list model.safetensors.wcodec\n  wcodec list --all --min-size 64MiB llama.wcodec",
		Args:    exactly(1, "one packed file or directory"),
		RunE:    func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args[0]) },
	}, outputFlags, packFlags)
	cmd.Flags().BoolVarP(&l.all, "all", "a", false, "a line for each tensor")
	cmd.Flags().Var(&l.minSize, "min-size", "leave out tensors smaller than `SIZE`, such as 1MiB")
	return cmd
}

// listResult is what list prints under --json.
type listResult struct {
	head
	File        string        `json:"file"`
	Version     string        `json:"format_version,omitempty"`
	Members     []listMember  `json:"members"`
	Tensors     []listTensor  `json:"tensors"`
	Copied      []listCopied  `json:"copied_files,omitempty"`
	PlainBytes  int64         `json:"plain_bytes"`
	StoredBytes int64         `json:"stored_bytes"`
	Ratio       float64       `json:"ratio"`
	DTypes      []dtypeTotals `json:"dtypes"`
}

type listMember struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	File        string            `json:"file,omitempty"` // of a directory: the packed file that holds it
	PlainBytes  int64             `json:"plain_bytes"`
	StoredBytes int64             `json:"stored_bytes"`
	Tensors     int               `json:"tensors"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

type listTensor struct {
	Name        string   `json:"name"`
	DType       string   `json:"dtype"`
	Shape       []uint64 `json:"shape"`
	Codes       []string `json:"codes"`
	PlainBytes  int64    `json:"plain_bytes"`
	StoredBytes int64    `json:"stored_bytes"`
	Ratio       float64  `json:"ratio"`
	Digest      string   `json:"digest"`
	Member      string   `json:"member"`
}

type listCopied struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// dtypeTotals sums up the tensors of one element type.
type dtypeTotals struct {
	DType       string  `json:"dtype"`
	Tensors     int     `json:"tensors"`
	PlainBytes  int64   `json:"plain_bytes"`
	StoredBytes int64   `json:"stored_bytes"`
	Ratio       float64 `json:"ratio"`
}

func (l *lister) run(ctx context.Context, in string) error {
	l.stdout = false
	ar, err := openArchive(ctx, in)
	if err != nil {
		return err
	}
	defer ar.Close()
	res, err := l.collect(ar)
	if err != nil {
		return err
	}
	l.result = res
	if l.json {
		return nil
	}
	return l.print(os.Stdout, res)
}

func (l *lister) collect(ar *archive) (*listResult, error) {
	res := &listResult{File: ar.path, Members: []listMember{}, Tensors: []listTensor{}, DTypes: []dtypeTotals{}}
	dtypes := make(map[string]int)
	for i, r := range ar.readers {
		major, minor := r.Version()
		res.Version = fmt.Sprintf("%d.%d", major, minor)
		res.StoredBytes += r.Size()
		for _, m := range r.Members() {
			lm := listMember{
				Name: m.Name(), Kind: m.Kind(), PlainBytes: m.Size(), StoredBytes: m.StoredSize(), Tensors: len(m.Tensors()),
			}
			if ar.files != nil {
				lm.File = ar.files[i]
			}
			if m.Kind() == wcodec.KindSafetensors {
				meta, err := m.Metadata()
				if err != nil {
					return nil, err
				}
				lm.Metadata = meta
			}
			res.Members = append(res.Members, lm)
			res.PlainBytes += m.Size()
		}
		for _, t := range r.Tensors() {
			if t.Size() < int64(l.minSize) {
				continue
			}
			digest := t.Digest()
			res.Tensors = append(res.Tensors, listTensor{
				Name: t.Name(), DType: t.DType(), Shape: t.Shape(), Codes: t.Codes(), PlainBytes: t.Size(),
				StoredBytes: t.StoredSize(), Ratio: ratio(t.Size(), t.StoredSize()),
				Digest: hex.EncodeToString(digest[:]), Member: t.Member().Name(),
			})
			k, there := dtypes[t.DType()]
			if !there {
				k = len(res.DTypes)
				dtypes[t.DType()] = k
				res.DTypes = append(res.DTypes, dtypeTotals{DType: t.DType()})
			}
			d := &res.DTypes[k]
			d.Tensors++
			d.PlainBytes += t.Size()
			d.StoredBytes += t.StoredSize()
			d.Ratio = ratio(d.PlainBytes, d.StoredBytes)
		}
	}
	for _, f := range ar.copied {
		res.Copied = append(res.Copied, listCopied{f.Name, f.Size})
		res.PlainBytes += f.Size
		res.StoredBytes += f.Size
	}
	res.Ratio = ratio(res.PlainBytes, res.StoredBytes)
	return res, nil
}

// line is one line of the table: a tensor, or several that share everything but numbers in their names.
type line struct {
	name, dtype, shape, codes string
	count                     int
	plain, stored             int64
}

// numbers are the parts of a name that count layers and experts.
var numbers = regexp.MustCompile(`(^|\.)[0-9]+(\.|$)`)

// collapse puts # for the numbers in a name.
func collapse(name string) string {
	// Neighbouring numbers share a dot, so one pass could miss the second.
	for {
		next := numbers.ReplaceAllString(name, "${1}#${2}")
		if next == name {
			return name
		}
		name = next
	}
}

func (l *lister) lines(ts []listTensor) []*line {
	var lines []*line
	at := make(map[line]*line)
	for _, t := range ts {
		key := line{name: t.Name, dtype: t.DType, shape: shapeText(t.Shape), codes: strings.Join(t.Codes, "+")}
		if !l.all {
			key.name = collapse(t.Name)
		}
		ln := at[key]
		if ln == nil {
			ln = &line{name: key.name, dtype: key.dtype, shape: key.shape, codes: key.codes}
			at[key] = ln
			lines = append(lines, ln)
		}
		ln.count++
		ln.plain += t.PlainBytes
		ln.stored += t.StoredBytes
	}
	return lines
}

func shapeText(shape []uint64) string {
	s := make([]string, len(shape))
	for i, n := range shape {
		s[i] = fmt.Sprint(n)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// printable makes a name from a file safe for a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

func (l *lister) print(out io.Writer, res *listResult) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tNAME\tTYPE\tSHAPE\tCODE\tPLAIN\tSTORED\tRATIO")
	for _, ln := range l.lines(res.Tensors) {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.3f\n", ln.count, printable(ln.name), printable(ln.dtype), ln.shape,
			orDash(ln.codes), humanSize(ln.plain), humanSize(ln.stored), ratio(ln.plain, ln.stored))
	}
	for _, m := range res.Members {
		if m.Kind != wcodec.KindSafetensors {
			fmt.Fprintf(w, "1\t%s\tfile\t\tbytes\t%s\t%s\t%.3f\n", printable(m.Name), humanSize(m.PlainBytes),
				humanSize(m.StoredBytes), ratio(m.PlainBytes, m.StoredBytes))
		}
	}
	for _, f := range res.Copied {
		fmt.Fprintf(w, "1\t%s\tfile\t\tcopied\t%s\t%s\t%.3f\n", printable(f.Name), humanSize(f.Bytes), humanSize(f.Bytes), 1.0)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, d := range res.DTypes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\tratio %.3f\n", printable(d.DType), plural(d.Tensors, "tensor"), humanSize(d.PlainBytes),
			humanSize(d.StoredBytes), d.Ratio)
	}
	fmt.Fprintf(w, "total\t%s\t%s\t%s\tratio %.3f\n", plural(len(res.Members)+len(res.Copied), "file"),
		humanSize(res.PlainBytes), humanSize(res.StoredBytes), res.Ratio)
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
