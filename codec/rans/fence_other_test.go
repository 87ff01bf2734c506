//go:build !linux && amd64 && !noasm

package rans

import "testing"

// fence returns n bytes; only Linux guards them.
func fence(_ testing.TB, n int) []byte { return make([]byte, n) }
