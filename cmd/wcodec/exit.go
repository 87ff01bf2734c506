package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wcodec/wcodec"
)

// Exit codes. They are part of the command's interface: docs/CLI.md has them too.
const (
	exitOK          = 0
	exitRuntime     = 1 // I/O, memory, device, mismatch
	exitUsage       = 2
	exitCorrupt     = 3
	exitUnsupported = 4
	exitExists      = 5
)

// usageError is a command line that means nothing.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted is an error with advice of its own.
type hinted struct {
	error
	advice string
}

func (h hinted) Unwrap() error { return h.error }

// partial is the error of a run over several inputs of which some failed; each has been reported already.
type partial struct {
	first     error
	failed, n int
}

func (p partial) Error() string {
	return fmt.Sprintf("%d of %s failed", p.failed, plural(p.n, "input"))
}
func (p partial) Unwrap() error { return p.first }

// exitCode says how the process ends after err.
func exitCode(err error) int {
	var sig signalError
	var use usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &sig):
		return sig.exitCode()
	case errors.As(err, &use):
		return exitUsage
	case errors.Is(err, wcodec.ErrUnsupported):
		return exitUnsupported
	case errors.Is(err, wcodec.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, wcodec.ErrExists):
		return exitExists
	}
	return exitRuntime
}

// advice says what to do about err, or nothing.
func advice(verb string, err error) string {
	var h hinted
	var p partial
	packing := verb == "compress"
	switch {
	case errors.As(err, &p):
		return "" // each failure had its own
	case errors.As(err, &h):
		return h.advice
	case errors.Is(err, wcodec.ErrTrailing):
		return "--keep-trailing keeps them, --blob takes the file as plain bytes"
	case errors.Is(err, wcodec.ErrExists):
		return "-f replaces it"
	case errors.Is(err, wcodec.ErrUnsupported):
		return "a newer wcodec may read it; this one is " + version
	case errors.Is(err, wcodec.ErrCorrupt) && packing:
		return "get a fresh copy of it, or take it as plain bytes with --blob"
	case errors.Is(err, wcodec.ErrNotWcodec):
		return "wcodec compress makes one of it"
	case errors.Is(err, wcodec.ErrCorrupt):
		return "the file is damaged or incomplete: get a fresh copy of it"
	case errors.Is(err, wcodec.ErrLink) && packing:
		return "-L, --follow-links takes what links point to"
	case errors.Is(err, wcodec.ErrLink):
		return "cp -RL makes a directory without links of it"
	case errors.Is(err, wcodec.ErrNotFound):
		return "wcodec list --all shows the names"
	case errors.Is(err, syscall.ENOSPC):
		return "free some space, or name another place with -o"
	}
	return ""
}

// finish reports what a run ended with and returns the exit code.
func (a *app) finish(ctx context.Context, cmd *cobra.Command, err error) int {
	a.bar.clear()
	if err != nil && !a.started {
		err = usageError{err} // cobra's own complaints
	}
	var sig signalError
	if err != nil && errors.As(context.Cause(ctx), &sig) {
		err = sig
	}
	code := exitCode(err)
	verb := cmd.Name()
	if err != nil {
		a.complain(verb, err)
	}
	if !a.json || err == nil && !a.started && !askedVersion(cmd) {
		return code // no verb ran: help was asked for, and stands there
	}
	if err == nil && askedVersion(cmd) {
		a.result = &versionResult{Version: version}
	}
	if jerr := a.printJSON(verb, code, err); jerr != nil {
		a.complain(verb, jerr)
		return max(code, exitRuntime)
	}
	return code
}

// askedVersion reports whether the run printed the version and nothing else. Help comes before it.
func askedVersion(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("version") && !cmd.Flags().Changed("help")
}

// versionResult is what -V prints under --json.
type versionResult struct {
	head
	Version string `json:"version"`
}

// complain writes one error for a reader: what, then what to do.
func (a *app) complain(verb string, err error) {
	if a.quiet >= 2 {
		return
	}
	a.bar.clear()
	msg := strings.TrimPrefix(err.Error(), "wcodec: ")
	if todo := advice(verb, err); todo != "" {
		msg += " (" + todo + ")"
	}
	fmt.Fprintln(os.Stderr, "wcodec: "+msg)
	if use := (usageError{}); errors.As(err, &use) {
		fmt.Fprintf(os.Stderr, "Run 'wcodec help%s' for what it takes.\n", verbSuffix(verb))
	}
}

func verbSuffix(verb string) string {
	if verb == "wcodec" {
		return ""
	}
	return " " + verb
}

// warn writes one line that is not an error, unless -q.
func (a *app) warn(format string, args ...any) {
	if a.quiet > 0 {
		return
	}
	a.bar.clear()
	fmt.Fprintf(os.Stderr, "wcodec: "+format+"\n", args...)
}

// note writes one line where -v asked for more.
func (a *app) note(format string, args ...any) {
	if a.verbose > 0 {
		a.warn(format, args...)
	}
}

// shortError leaves the name of the system call out of a bare error of one.
func shortError(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && err == error(pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}
