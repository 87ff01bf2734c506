package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units of sizes as users write them: binary ones, the short forms that mean the same to zstd and dd, and decimal ones.
var units = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40},
	{"B", 1}, {"", 1},
}

// parseSize reads a number of bytes such as 4096, 64KiB, 1.5GiB or 2GB.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	unit := strings.TrimSpace(s[len(digits):])
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a size (write 4096, 64KiB, 1.5GiB or 2GB)", s)
	}
	for _, u := range units {
		if strings.EqualFold(unit, u.name) {
			if v *= u.size; v >= math.MaxInt64 {
				return 0, fmt.Errorf("%q is more than 8 EiB", s)
			}
			return int64(v), nil
		}
	}
	return 0, fmt.Errorf("%q: no unit %q (there are KiB, MiB, GiB, TiB, KB, MB, GB, TB)", s, unit)
}

// sizeFlag is a pflag.Value for a number of bytes.
type sizeFlag int64

func (f *sizeFlag) Set(s string) error {
	n, err := parseSize(s)
	*f = sizeFlag(n)
	return err
}

func (f *sizeFlag) String() string { return humanSize(int64(*f)) }
func (f *sizeFlag) Type() string   { return "SIZE" }

// humanSize writes a number of bytes with three or four significant digits.
func humanSize(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), ""
	for _, u := range units[:4] {
		if v = float64(n) / u.size; v < 1000 || u.name == "TiB" {
			unit = u.name
			break
		}
	}
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, unit)
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// humanRate writes bytes a second in decimal units, as vendors and papers give them.
func humanRate(bytes int64, d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	r := float64(bytes) / d.Seconds()
	if r >= 1e9 {
		return fmt.Sprintf("%.2f GB/s", r/1e9)
	}
	return fmt.Sprintf("%.0f MB/s", r/1e6)
}

// humanTime writes a duration as a user reads it: seconds with a decimal, then minutes, then hours.
func humanTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d)
}

// clock writes a duration as m:ss or h:mm:ss.
func clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// ratio is plain over stored, or 0 where nothing is stored.
func ratio(plain, stored int64) float64 {
	if stored == 0 {
		return 0
	}
	return float64(plain) / float64(stored)
}

// percent is stored over plain as text, "-" where nothing is plain.
func percent(stored, plain int64) string {
	if plain == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(stored)/float64(plain))
}

// plural is "1 file", "2 files".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
