package store

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs fn, which reads mapped bytes, and returns an error that wraps ErrFault where reading them faulted. It
// covers the calling goroutine alone. Every other panic, a nil dereference among them, passes through.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		})
		if !ok {
			panic(r)
		}
		err = fmt.Errorf("address %#x: %w", fault.Addr(), ErrFault)
	}()
	return fn()
}
