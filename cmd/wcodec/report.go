package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/wcodec/wcodec"
)

// result is what a verb prints under --json. docs/CLI.md documents the fields of every verb; they are only ever added to.
type result interface{ setHead(head) }

// head is common to all results.
type head struct {
	Command  string `json:"command"`
	OK       bool   `json:"ok"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"`
}

func (h *head) setHead(x head) { *h = x }

// printJSON writes the run's one object.
func (a *app) printJSON(verb string, code int, err error) error {
	r := a.result
	if r == nil {
		r = &struct{ head }{}
	}
	h := head{Command: verb, OK: err == nil, ExitCode: code}
	if err != nil {
		h.Error = err.Error()
	}
	r.setHead(h)
	out, jerr := json.MarshalIndent(r, "", "  ")
	if jerr != nil {
		return jerr
	}
	to := os.Stdout
	if a.stdout { // taken by the data
		to = os.Stderr
	}
	_, jerr = fmt.Fprintln(to, string(out))
	return jerr
}

// fileResult is what was done with one input.
type fileResult struct {
	Input       string        `json:"input"`
	Output      string        `json:"output,omitempty"`
	Members     int           `json:"members,omitempty"`
	Tensors     int           `json:"tensors"`
	PlainBytes  int64         `json:"plain_bytes"`
	StoredBytes int64         `json:"stored_bytes"`
	Ratio       float64       `json:"ratio"`
	Seconds     float64       `json:"seconds"`
	BytesPerSec float64       `json:"plain_bytes_per_second"`
	Packed      int           `json:"packed_files,omitempty"`  // of a directory
	Copied      int           `json:"copied_files,omitempty"`  // of a directory
	Resumed     int           `json:"resumed_files,omitempty"` // of a directory: packed by an earlier run
	Stats       *wcodec.Stats `json:"stats,omitempty"`
	ExitCode    int           `json:"exit_code"`
	Error       string        `json:"error,omitempty"`
}

// filesResult is the result of the verbs that take files: compress, decompress, test, verify.
type filesResult struct {
	head
	DryRun      bool         `json:"dry_run,omitempty"`
	Files       []fileResult `json:"files"`
	PlainBytes  int64        `json:"plain_bytes"`
	StoredBytes int64        `json:"stored_bytes"`
	Ratio       float64      `json:"ratio"`
	Seconds     float64      `json:"seconds"`
	BytesPerSec float64      `json:"plain_bytes_per_second"`
}

// stats fills in what an operation counted.
func (f *fileResult) stats(st wcodec.Stats) {
	f.Members, f.Tensors = st.Members, st.Tensors
	f.PlainBytes, f.StoredBytes = st.PlainBytes, st.StoredBytes
	f.Stats = &st
}

// close fills in what follows from the rest.
func (f *fileResult) close(wall time.Duration, err error) {
	f.Ratio = ratio(f.PlainBytes, f.StoredBytes)
	f.Seconds, f.BytesPerSec = wall.Seconds(), perSecond(f.PlainBytes, wall)
	f.ExitCode = exitCode(err)
	if err != nil {
		f.Error = err.Error()
	}
}

func (r *filesResult) add(f fileResult) {
	r.Files = append(r.Files, f)
	if f.ExitCode == 0 {
		r.PlainBytes += f.PlainBytes
		r.StoredBytes += f.StoredBytes
	}
}

func (r *filesResult) close(wall time.Duration) {
	r.Ratio = ratio(r.PlainBytes, r.StoredBytes)
	r.Seconds, r.BytesPerSec = wall.Seconds(), perSecond(r.PlainBytes, wall)
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// each runs do for every input, goes on after a failure unless the run was cancelled, and ends with the summary.
// change says in the summary what became of the bytes, such as "packed".
func (a *app) each(inputs []string, change string, do func(in string, f *fileResult) error) error {
	res := &filesResult{DryRun: a.dryRun, Files: []fileResult{}}
	a.result = res
	begin := time.Now()
	var first error
	failed := 0
	for _, in := range inputs {
		f := fileResult{Input: in}
		a.bar.file(in)
		t := time.Now()
		err := do(in, &f)
		wall := time.Since(t)
		f.close(wall, err)
		res.add(f)
		if err == nil {
			if a.verbose > 0 || len(inputs) == 1 {
				a.fileLine(&f, change, wall)
			}
			continue
		}
		failed++
		if first == nil {
			first = err
		}
		if cancelled(err) {
			break
		}
		if len(inputs) > 1 {
			a.complain(a.verb, err)
		}
	}
	wall := time.Since(begin)
	res.close(wall)
	if len(inputs) > 1 && failed < len(inputs) {
		a.summary("%s %s: %s", plural(len(inputs)-failed, "input"), change, sizes(res.PlainBytes, res.StoredBytes, wall))
	}
	if failed > 0 && len(inputs) > 1 && !cancelled(first) {
		return partial{first, failed, len(inputs)}
	}
	return first
}

// fileLine is the summary of one input.
func (a *app) fileLine(f *fileResult, change string, wall time.Duration) {
	name := f.Input
	if f.Output != "" {
		name += " -> " + f.Output
	}
	extra := ""
	if f.Packed+f.Copied > 0 {
		extra = fmt.Sprintf(" (%s packed, %d copied", plural(f.Packed, "file"), f.Copied)
		if f.Resumed > 0 {
			extra += fmt.Sprintf(", %d of them by an earlier run", f.Resumed)
		}
		extra += ")"
	}
	a.summary("%s: %s: %s%s", name, change, sizes(f.PlainBytes, f.StoredBytes, wall), extra)
	if a.verbose > 0 && f.Stats != nil && !a.json {
		for _, line := range statLines(f.Stats) {
			a.summary("  %s", line)
		}
	}
}

// sizes says "15.0 GiB plain, 10.0 GiB stored, 66.8%, ratio 1.497, 3.2 s, 4.90 GB/s".
func sizes(plain, stored int64, wall time.Duration) string {
	return fmt.Sprintf("%s plain, %s stored, %s, ratio %.3f, %s, %s", humanSize(plain), humanSize(stored),
		percent(stored, plain), ratio(plain, stored), humanTime(wall), humanRate(plain, wall))
}
