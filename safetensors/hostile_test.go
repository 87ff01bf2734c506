package safetensors

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/wcodec/wcodec/internal/hostile"
)

// checkVerdict compares an error with what the corpus wants.
func checkVerdict(t *testing.T, want hostile.Want, err error) {
	t.Helper()
	kinds := map[hostile.Want]error{hostile.Truncated: ErrTruncated, hostile.TooLarge: ErrTooLarge, hostile.Trailing: ErrTrailing}
	if want == hostile.Accept {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("want %v, got %v", want, err)
	}
	for kind, sentinel := range kinds {
		if got := errors.Is(err, sentinel); got != (kind == want) {
			t.Errorf("want %v, got %v", want, err)
		}
	}
}

func TestHostile(t *testing.T) {
	for _, c := range hostile.Safetensors() {
		t.Run(c.Name, func(t *testing.T) {
			if c.Big && testing.Short() {
				t.Skip("big")
			}
			file := c.Data()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := Parse(file, int64(len(file)))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			checkVerdict(t, c.Want, err)

			// Bounds that are wide of what is measured, and far below what a quadratic or amplifying reader would show.
			allocated := after.TotalAlloc - before.TotalAlloc
			if most := 64<<10 + 6*uint64(len(file)); allocated > most {
				t.Errorf("%d bytes allocated for %d", allocated, len(file))
			}
			if most := time.Second + time.Duration(len(file))*500*time.Nanosecond; took > most {
				t.Errorf("%v for %d bytes", took, len(file))
			}
			t.Logf("%d bytes: %v, %d allocated", len(file), took, allocated)

			if _, _, rerr := ReadHeader(bytes.NewReader(file), int64(len(file))); (rerr == nil) != (err == nil) {
				t.Errorf("ReadHeader says %v, Parse %v", rerr, err)
			}
		})
	}
}

func TestHostileIndex(t *testing.T) {
	for _, c := range hostile.Index() {
		t.Run(c.Name, func(t *testing.T) {
			_, err := ParseIndex(c.Data())
			checkVerdict(t, c.Want, err)
		})
	}
}
