//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wcodec/wcodec/synth"
)

// model makes a small checkpoint and returns the path of its safetensors file and the content.
func model(t *testing.T) (string, []byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := synth.Write(t.Context(), dir, synth.Options{Model: "llama-3-8b", Layers: 1, Shrink: 16, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, b
}

// leftovers are the temporary files in dir.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, ".*wcodec-tmp-*"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stalled starts the command with args in dir, feeds it half of the input, and returns once its temporary file is
// there: a run that is certainly in the middle.
func stalled(t *testing.T, dir string, half []byte, args ...string) (*exec.Cmd, io.WriteCloser, *bytes.Buffer) {
	t.Helper()
	before := len(leftovers(t, dir))
	cmd := command(t, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := in.Write(half); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if len(leftovers(t, dir)) > before {
			return cmd, in, &stderr
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no temporary file in ten seconds: ", stderr.String())
	return nil, nil, nil
}

// exit waits for the command and returns its exit code.
func exit(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		var e *exec.ExitError
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		cmd.Process.Kill()
		<-done
		t.Fatal("still running after 30 seconds")
		return -1
	}
}

// A signal in the middle leaves no temporary file and what was there before; the exit code is the shell's.
func TestSignals(t *testing.T) {
	_, b := model(t)
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		if signal.Ignored(sig) {
			t.Logf("%v is ignored here, as under nohup, and the command is to leave it so", sig)
			continue
		}
		dir := t.TempDir()
		out := filepath.Join(dir, "out.wcodec")
		if err := os.WriteFile(out, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		cmd, _, stderr := stalled(t, dir, b[:len(b)/2], "compress", "-f", "--name", "model.safetensors", "-o", out, "-")
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if got := exit(t, cmd); got != want {
			t.Errorf("%v: exit code %d, want %d", sig, got, want)
		}
		if !strings.Contains(stderr.String(), "stopped by signal") {
			t.Errorf("%v: said %q", sig, stderr)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Errorf("%v: left %q", sig, left)
		}
		if got, err := os.ReadFile(out); err != nil || string(got) != "old" {
			t.Errorf("%v: the old output is %q, %v", sig, got, err)
		}
	}
}

// A run that writes to a reader which does not read ends all the same.
func TestSignalWhileOutputIsStuck(t *testing.T) {
	p, _ := model(t)
	cmd := command(t, "compress", "-c", p)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // to fill the pipe
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := exit(t, cmd); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
}

// Waiting for somebody to open the other end of a named pipe can be interrupted as well.
func TestSignalWhileInputIsStuck(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skip("no named pipes here:", err)
	}
	cmd := command(t, "compress", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := exit(t, cmd); got != 143 {
		t.Errorf("exit code %d, want 143", got)
	}
}

// kill -9 leaves the old output as it was, and what it leaves besides does not stand in the way of the next run.
func TestKilled(t *testing.T) {
	p, b := model(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.wcodec")
	if code := exit(t, started(t, "compress", "-q", "-o", out, p)); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	old, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	cmd, _, _ := stalled(t, dir, b[:len(b)/2], "compress", "-f", "--name", "other.safetensors", "-o", out, "-")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	exit(t, cmd)
	if got, err := os.ReadFile(out); err != nil || sha256.Sum256(got) != sha256.Sum256(old) {
		t.Fatalf("the old output changed, %v", err)
	}
	if code := exit(t, started(t, "test", "-q", out)); code != 0 {
		t.Errorf("the old output: exit code %d", code)
	}
	if code := exit(t, started(t, "compress", "-q", "-f", "-o", out, p)); code != 0 {
		t.Errorf("the next run: exit code %d", code)
	}
}

func started(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Of two runs on one output each writes a file of its own; the output is always one of them, whole. Without -f the
// second to finish is refused.
func TestTwoRunsOnOneOutput(t *testing.T) {
	p, b := model(t)
	for _, force := range []bool{false, true} {
		dir := t.TempDir()
		out := filepath.Join(dir, "out.wcodec")
		args := []string{"compress", "-q", "--name", "late.safetensors", "-o", out}
		if force {
			args = append(args, "-f")
		}
		slow, in, stderr := stalled(t, dir, b[:len(b)/2], append(args, "-")...)
		if code := exit(t, started(t, "compress", "-q", "-o", out, p)); code != 0 {
			t.Fatalf("the quick run: exit code %d", code)
		}
		quick, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(b[len(b)/2:]); err != nil {
			t.Fatal(err)
		}
		in.Close()
		want := exitExists
		if force {
			want = exitOK
		}
		if code := exit(t, slow); code != want {
			t.Errorf("force %v: the slow run: exit code %d, want %d: %s", force, code, want, stderr)
		}
		got, err := os.ReadFile(out)
		if err != nil || bytes.Equal(got, quick) == force {
			t.Errorf("force %v: the output is the quick run's: %v, %v", force, bytes.Equal(got, quick), err)
		}
		if code := exit(t, started(t, "test", "-q", out)); code != 0 {
			t.Errorf("force %v: the output: exit code %d", force, code)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Errorf("force %v: left %q", force, left)
		}
	}
}

// What may not be read or written is said by name. Root may do everything, so this runs as somebody else.
func TestPermissions(t *testing.T) {
	p, _ := model(t)
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o000); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{filepath.Join(locked, "out.wcodec"), "compress", "-o", filepath.Join(locked, "out.wcodec"), p},
		{secret, "compress", secret},
		{secret, "test", secret},
	} {
		cmd := command(t, c[1:]...)
		if os.Geteuid() == 0 {
			if !reachable(t, dir, p, cmd.Path) {
				t.Skip("another user cannot reach the test's files")
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Skip("cannot run as another user:", err)
		}
		if code := cmd.ProcessState.ExitCode(); code != exitRuntime || !strings.Contains(string(out), c[0]+": permission denied") {
			t.Errorf("%v: exit code %d, said %q", c[1:], code, out)
		}
	}
}

// reachable opens the way to the files for any user, as far as the test owns it, and reports whether that is far enough.
func reachable(t *testing.T, paths ...string) bool {
	t.Helper()
	for _, p := range paths {
		for at := filepath.Dir(p); ; at = filepath.Dir(at) {
			st, err := os.Stat(at)
			if err != nil {
				return false
			}
			if st.Mode().Perm()&0o001 == 0 {
				if !strings.HasPrefix(at, os.TempDir()) || os.Chmod(at, st.Mode().Perm()|0o055) != nil {
					return false
				}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return os.Chmod(paths[0], 0o777) == nil
}
