package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wcodec/wcodec"
)

// bar is the one line of progress of a run, however many files the run takes. It draws when it is told of progress and
// owns no goroutine. A nil bar draws nothing.
type bar struct {
	w     io.Writer
	width func() int // columns of the terminal
	now   func() time.Time

	label string // the file at work
	total int64  // plain bytes of the whole run, or -1
	base  wcodec.Progress
	last  wcodec.Progress
	start time.Time
	drawn bool

	// The rate is smoothed: a mean over all of the run hides a change, one over a tenth of a second flickers. Early in the
	// run it is that mean: weight is how much of it has been measured, which approaches 1.
	rate   float64
	weight float64
	rateAt time.Time
	rateN  int64
}

const (
	barHalfLife = 3 * time.Second
	barCells    = 24
	minWidth    = 20
)

// newBar starts the progress of a run that handles total plain bytes, or -1 where that is not known.
func newBar(w io.Writer, width func() int, now func() time.Time, total int64) *bar {
	t := now()
	return &bar{w: w, width: width, now: now, total: total, start: t, rateAt: t}
}

// file says which file is at work from here on; what the one before it did counts as done.
func (b *bar) file(label string) {
	if b == nil {
		return
	}
	b.base.Done += b.last.Done
	b.base.Stored += b.last.Stored
	b.last = wcodec.Progress{}
	b.label = label
}

// update is an Options.Progress.
func (b *bar) update(p wcodec.Progress) {
	if b == nil {
		return
	}
	b.last = p
	now := b.now()
	done := b.base.Done + p.Done
	b.measure(now, done)
	line := b.line(now, done, b.base.Stored+p.Stored)
	if w := b.width() - 1; w >= minWidth && len(line) > w {
		line = line[:w]
	}
	fmt.Fprint(b.w, "\r"+line+"\x1b[K")
	b.drawn = true
}

func (b *bar) measure(now time.Time, done int64) {
	dt := now.Sub(b.rateAt)
	if dt <= 0 {
		return
	}
	inst := float64(done-b.rateN) / dt.Seconds()
	keep := float64(barHalfLife) / float64(barHalfLife+dt)
	weight := keep*b.weight + 1 - keep
	b.rate = (keep*b.weight*b.rate + (1-keep)*inst) / weight
	b.weight = weight
	b.rateAt, b.rateN = now, done
}

func (b *bar) line(now time.Time, done, stored int64) string {
	tail := humanRate(int64(b.rate), time.Second)
	if stored > 0 {
		tail += fmt.Sprintf("  ratio %.3f", ratio(done, stored))
	}
	if b.total < 0 {
		return fmt.Sprintf("%s  %s  %s  %s", ascii(b.label), humanSize(done), tail, clock(now.Sub(b.start)))
	}
	part := 1.0
	if b.total > 0 {
		part = min(1, float64(done)/float64(b.total))
	}
	eta := "-:--"
	if left := b.total - done; left <= 0 {
		eta = "0:00"
	} else if b.rate > 0 && float64(left)/b.rate < 1e6 {
		eta = clock(time.Duration(float64(left) / b.rate * float64(time.Second)))
	}
	full := int(part * barCells)
	cells := strings.Repeat("#", full) + strings.Repeat(".", barCells-full)
	return fmt.Sprintf("[%s] %3.0f%%  %s of %s  %s  ETA %s  %s",
		cells, 100*part, humanSize(done), humanSize(b.total), tail, eta, ascii(b.label))
}

// clear takes the line away, so that messages and the summary stand alone.
func (b *bar) clear() {
	if b == nil || !b.drawn {
		return
	}
	fmt.Fprint(b.w, "\r\x1b[K")
	b.drawn = false
}

// ascii makes a name safe for the terminal and its length equal to its width.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
