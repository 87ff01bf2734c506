package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wcodec/wcodec"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "4096": 4096, "64KiB": 64 << 10, "64 KiB": 64 << 10, "1.5GiB": 3 << 29, "2GB": 2e9, "7b": 7, "3m": 3 << 20, "1TiB": 1 << 40,
	} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "MiB", "-1", "1XiB", "1,5GiB", "9999999TiB", "1 2", "NaN", "Inf"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("%q is %d, want an error", in, got)
		}
	}
}

func TestHuman(t *testing.T) {
	for want, got := range map[string]string{
		"0 B":       humanSize(0),
		"1023 B":    humanSize(1023),
		"1.00 KiB":  humanSize(1024),
		"999 KiB":   humanSize(999 << 10),
		"0.98 MiB":  humanSize(1000 << 10),
		"15.0 GiB":  humanSize(16060522496),
		"131 GiB":   humanSize(141e9),
		"1.50 GB/s": humanRate(3e9, 2*time.Second),
		"999 MB/s":  humanRate(999e6, time.Second),
		"-":         humanRate(1, 0),
		"12 ms":     humanTime(12 * time.Millisecond),
		"1.5 s":     humanTime(1500 * time.Millisecond),
		"1:01":      humanTime(61 * time.Second),
		"2:00:05":   humanTime(2*time.Hour + 5*time.Second),
		"66.7%":     percent(2, 3),
		"1 file":    plural(1, "file"),
		"0 files":   plural(0, "file"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCollapse(t *testing.T) {
	for in, want := range map[string]string{
		"model.layers.0.mlp.up_proj.weight":      "model.layers.#.mlp.up_proj.weight",
		"model.layers.17.mlp.experts.3.down.0.1": "model.layers.#.mlp.experts.#.down.#.#",
		"h.1.2.3.4.w":                            "h.#.#.#.#.w",
		"0":                                      "#",
		"layer10.w":                              "layer10.w",
		"":                                       "",
		"a.1x.b":                                 "a.1x.b",
		"model.layers.0.self_attn.q_proj.weight_": "model.layers.#.self_attn.q_proj.weight_",
	} {
		if got := collapse(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[31mb\u009bc\nd\x7f é 名"); strings.ContainsAny(got, "\x1b\u009b\n\x7f") || !strings.HasSuffix(got, " é 名") {
		t.Errorf("got %q", got)
	}
}

// The bar of a run over several files goes up only, and ends at its total.
func TestBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	b := newBar(&out, func() int { return 120 }, func() time.Time { return now }, 3000)
	b.file("one\x1b")
	lines := func() []string { return strings.Split(out.String(), "\r") }
	for i, c := range []struct {
		p    wcodec.Progress
		file string
		want []string
	}{
		{wcodec.Progress{Done: 500, Total: 1000, Stored: 250}, "", []string{" 17%", "500 B of 2.93 KiB", "ratio 2.000", "ETA 0:05", "one?"}},
		{wcodec.Progress{Done: 1000, Total: 1000, Stored: 500}, "", []string{" 33%", "ratio 2.000", "ETA 0:04"}},
		{wcodec.Progress{Done: 1000, Total: 2000, Stored: 1000}, "two", []string{" 67%", "1.95 KiB of 2.93 KiB", "ratio 1.333", "two"}},
		{wcodec.Progress{Done: 2000, Total: 2000, Stored: 2000}, "", []string{"[########################] 100%", "ratio 1.200", "ETA 0:00"}},
	} {
		if c.file != "" {
			b.file(c.file)
		}
		now = now.Add(time.Second)
		b.update(c.p)
		last := lines()[len(lines())-1]
		for _, w := range c.want {
			if !strings.Contains(last, w) {
				t.Errorf("update %d shows %q, without %q", i, last, w)
			}
		}
	}
	b.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Error("the line stays")
	}
	n := out.Len()
	b.clear()
	if out.Len() != n {
		t.Error("cleared twice")
	}

	out.Reset()
	b = newBar(&out, func() int { return 40 }, func() time.Time { return now }, -1)
	b.file("a stream with a name that is much too long for the terminal")
	now = now.Add(time.Second)
	b.update(wcodec.Progress{Done: 5 << 20, Total: -1, Stored: 4 << 20})
	line := strings.TrimSuffix(lines()[1], "\x1b[K")
	if len(line) > 39 || strings.Contains(line, "%") {
		t.Errorf("%d columns of 40: %q", len(line), line)
	}
	var none *bar
	none.file("x")
	none.update(wcodec.Progress{})
	none.clear()
}

// A slow start does not stay in the rate, and so in the remaining time, of a run that is fast from there on.
func TestBarRate(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBar(io.Discard, func() int { return 120 }, func() time.Time { return now }, 1<<30)
	now = now.Add(100 * time.Millisecond)
	b.update(wcodec.Progress{Done: 1 << 10})
	now = now.Add(100 * time.Millisecond)
	b.update(wcodec.Progress{Done: 1 << 20})
	if got, mean := b.rate, float64(1<<20)/0.2; got < 0.9*mean || got > 1.1*mean {
		t.Errorf("%.0f bytes a second, the mean is %.0f", got, mean)
	}
}

func TestHistogram(t *testing.T) {
	var b strings.Builder
	counts := make([]uint64, 256)
	counts[100], counts[101], counts[103] = 1, 2, 1
	printHistogram(&b, counts)
	want := []string{"100  25.0000% " + strings.Repeat("█", 25), "101  50.0000% " + strings.Repeat("█", 50), "102   0.0000%\n", "103  25.0000%"}
	for _, w := range want {
		if !strings.Contains(b.String(), w) {
			t.Errorf("no %q in\n%s", w, b.String())
		}
	}
	b.Reset()
	counts[0], counts[255] = 1, 1
	printHistogram(&b, counts)
	if n := strings.Count(b.String(), "\n"); n > mostRows+2 || !strings.Contains(b.String(), "98-104") {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
	b.Reset()
	printHistogram(&b, make([]uint64, 16))
	if b.Len() != 0 {
		t.Errorf("a histogram of nothing: %q", b.String())
	}
}
