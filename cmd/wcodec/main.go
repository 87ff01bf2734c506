// Command wcodec packs neural-network checkpoints and gives them back bit for bit.
//
// It is a thin layer over the package wcodec: it knows flags, paths, terminals, signals and exit codes, and nothing of
// formats or codes. Every verb has a file of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
)

// version is set by the linker (see the Makefile); what "go install" builds has its module's.
var version string

func init() {
	if version != "" {
		return
	}
	version = "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
}

// How long a cancelled operation has to clean up; it is over early where the operation returns. One that writes to
// standard output has nothing to remove, and may wait for a reader that never comes.
const (
	grace       = 10 * time.Second
	graceStdout = 500 * time.Millisecond
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole program but for the exit.
func run(args []string) int {
	a := newApp()
	ctx, stop := cancelOnSignal(context.Background(), &a.grace)
	defer stop()
	root := a.rootCmd()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.finish(ctx, cmd, err)
}

// signalError is the cause of a context that a signal cancelled.
type signalError struct{ sig syscall.Signal }

func (e signalError) Error() string {
	return fmt.Sprintf("stopped by signal %d (%v)", int(e.sig), e.sig)
}

// exitCode is what shells expect of a process that ended by the signal.
func (e signalError) exitCode() int { return 128 + int(e.sig) }

// cancelOnSignal returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, so that temporary files are
// removed on the way out. The second one, or the end of the grace, ends the process at once.
func cancelOnSignal(parent context.Context, grace *atomic.Int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1)
		signal.Notify(ch, syscall.SIGHUP)
	}
	go func() {
		sig, ok := (<-ch).(syscall.Signal)
		if !ok {
			return
		}
		e := signalError{sig}
		cancel(e)
		select {
		case <-ch:
		case <-time.After(time.Duration(grace.Load())):
		}
		os.Exit(e.exitCode())
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}
