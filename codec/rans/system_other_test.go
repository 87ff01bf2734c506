//go:build !linux && amd64 && !noasm

package rans

import (
	"testing"
	"time"
)

// fence returns n bytes; only Linux guards them.
func fence(_ testing.TB, n int, _ bool) []byte { return make([]byte, n) }

// cpuTime is not known elsewhere.
func cpuTime() time.Duration { return 0 }
