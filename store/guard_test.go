package store

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGuardPassesResults(t *testing.T) {
	want := errors.New("own")
	if err := Guard(func() error { return want }); err != want {
		t.Fatal(err)
	}
	if err := Guard(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	caught := func(fn func() error) (r any) {
		defer func() { r = recover() }()
		err := Guard(fn)
		t.Errorf("returned %v", err)
		return nil
	}
	if r := caught(func() error { panic("mine") }); r != "mine" {
		t.Error(r)
	}
	var p *[10]int
	if _, ok := caught(func() error { p[3] = 1; return nil }).(runtime.Error); !ok {
		t.Error("nil dereference did not pass through")
	}
	var s []int
	if _, ok := caught(func() error { _ = s[len(s)]; return nil }).(runtime.Error); !ok {
		t.Error("index error did not pass through")
	}
}

func TestGuardRestoresFaultMode(t *testing.T) {
	for _, mode := range []bool{false, true} {
		old := debug.SetPanicOnFault(mode)
		if err := Guard(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := debug.SetPanicOnFault(old); got != mode {
			t.Errorf("left at %v, was %v", got, mode)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	for b.Loop() {
		if err := Guard(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
