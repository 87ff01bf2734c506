package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new pseudo-terminal of 100 columns.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: 100}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// shown runs cmd with the terminal in the places that attach says, and returns what the terminal showed.
func shown(t *testing.T, cmd *exec.Cmd, attach func(tty *os.File)) string {
	t.Helper()
	master, slave := openTerminal(t)
	attach(slave)
	var screen bytes.Buffer
	done := make(chan struct{})
	go func() {
		screen.ReadFrom(master) // ends with an error when the last slave closes
		close(done)
	}()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	slave.Close()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the terminal did not close")
	}
	return screen.String()
}

func TestBinaryToTerminalIsRefused(t *testing.T) {
	p, _ := model(t)
	packed := filepath.Join(t.TempDir(), "p.wcodec")
	if code := exit(t, started(t, "compress", "-q", "-o", packed, p)); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, args := range [][]string{
		{"compress", "-c", p}, {"compress", "-o", "-", p}, {"decompress", "-c", packed}, {"compress", "-f", "-c", p},
		{"extract", "--raw", "-c", packed, "lm_head.weight"}, {"compress", "--bundle", "-c", p},
	} {
		cmd := command(t, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if s := shown(t, cmd, func(tty *os.File) { cmd.Stdout = tty }); s != "" {
			t.Errorf("%v: the terminal showed %d bytes", args, len(s))
		}
		if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(stderr.String(), "not written to a terminal") {
			t.Errorf("%v: exit code %d, said %q", args, code, &stderr)
		}
	}
	// Nor is a keyboard an input.
	for _, args := range [][]string{{"compress", "-c", "-"}, {"test", "-"}, {"decompress", "-o", "x", "-"}} {
		cmd := command(t, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		shown(t, cmd, func(tty *os.File) { cmd.Stdin = tty })
		if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(stderr.String(), "standard input is a terminal") {
			t.Errorf("%v: exit code %d, said %q", args, code, &stderr)
		}
	}
}

// The bar is drawn on a terminal, ends at 100%, and goes before the summary comes. Elsewhere there is none.
func TestBarOnTerminal(t *testing.T) {
	p, _ := model(t)
	out := filepath.Join(t.TempDir(), "p.wcodec")
	cmd := command(t, "compress", "-f", "-o", out, p)
	s := shown(t, cmd, func(tty *os.File) { cmd.Stderr = tty })
	if !strings.Contains(s, "] 100%") || !strings.Contains(s, "ratio 1.") || !strings.Contains(s, "ETA 0:00") {
		t.Errorf("no bar in %q", s)
	}
	last := s[strings.LastIndex(s, "\x1b[K")+3:]
	if !strings.Contains(last, "packed: ") || strings.Contains(last, "ETA") {
		t.Errorf("the terminal ends with %q", last)
	}
	for line := range strings.SplitSeq(s, "\r") {
		if body, ok := strings.CutSuffix(line, "\x1b[K"); ok && len(body) > 99 {
			t.Errorf("a line of %d columns on a terminal of 100", len(body))
		}
	}
	for _, flag := range []string{"--no-progress", "-q", "-qq"} {
		cmd := command(t, "compress", "-f", flag, "-o", out, p)
		if s := shown(t, cmd, func(tty *os.File) { cmd.Stderr = tty }); strings.Contains(s, "\x1b") {
			t.Errorf("%s: the terminal showed %q", flag, s)
		}
	}
	cmd = command(t, "compress", "-f", "-o", out, p)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || strings.Contains(stderr.String(), "\x1b") || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("without a terminal: %v, %q", err, &stderr)
	}
}
