package main

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// asMain makes a copy of the test binary behave as the command.
const asMain = "WCODEC_TEST_AS_MAIN"

var update = flag.Bool("update", false, "let the scripts rewrite the outputs that they compare with")

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"wcodec": main})
}

// command is the command as a process of its own, for tests that are not scripts.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	return cmd
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     cmdCode,
			"same":     cmdSame,
			"flip":     cmdFlip,
			"truncate": cmdTruncate,
			"waitfor":  cmdWaitFor,
			"nothing":  cmdNothing,
			"tmpfs":    cmdTmpfs,
		},
	})
}

// condition adds [root], for what permissions do not stop, and [tmpfs], for machines that let tests mount one.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "tmpfs":
		return canMount(), nil
	}
	return false, errors.New("no such condition")
}

// cmdCode runs a command that must end with an exit code: code N command args...
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code is %d, want %d", got, want)
	}
}

// cmdSame compares two files, or all files of two directories, byte by byte: same A B.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same A B")
	}
	a, b := tree(ts, args[0]), tree(ts, args[1])
	diff := ""
	for name, content := range a {
		if other, ok := b[name]; !ok || !bytes.Equal(content, other) {
			diff = name
		}
	}
	if len(a) != len(b) {
		diff = "the number of files"
	}
	if (diff != "") != neg {
		ts.Fatalf("%s and %s: differ in %q, want a difference: %v", args[0], args[1], diff, neg)
	}
}

func tree(ts *testscript.TestScript, path string) map[string][]byte {
	files := make(map[string][]byte)
	root := ts.MkAbs(path)
	ts.Check(filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files[rel], err = os.ReadFile(p)
		return err
	}))
	return files
}

// cmdFlip flips the lowest bit of one byte; a negative offset counts from the end: flip FILE OFFSET.
func cmdFlip(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	off, err := strconv.ParseInt(args[1], 0, 64)
	ts.Check(err)
	p := ts.MkAbs(args[0])
	if off < 0 {
		st, err := os.Stat(p)
		ts.Check(err)
		off += st.Size()
	}
	ts.Check(flipBit(p, off, 0))
}

// cmdTruncate cuts bytes off the end: truncate FILE BYTES.
func cmdTruncate(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: truncate FILE BYTES")
	}
	n, err := strconv.ParseInt(args[1], 0, 64)
	ts.Check(err)
	p := ts.MkAbs(args[0])
	st, err := os.Stat(p)
	ts.Check(err)
	ts.Check(os.Truncate(p, st.Size()-n))
}

// cmdWaitFor waits until something matches a pattern: waitfor GLOB.
func cmdWaitFor(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: waitfor GLOB")
	}
	for range 1000 {
		if m, _ := filepath.Glob(ts.MkAbs(args[0])); len(m) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nothing matched %s in ten seconds", args[0])
}

// cmdNothing requires that nothing matches a pattern, hidden files included: nothing GLOB.
func cmdNothing(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: nothing GLOB")
	}
	if m, _ := filepath.Glob(ts.MkAbs(args[0])); len(m) > 0 {
		ts.Fatalf("%q is there", m)
	}
}

// cmdTmpfs mounts a small file system for the rest of the script: tmpfs DIR SIZE.
func cmdTmpfs(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	ts.Check(mountTmpfs(dir, args[1]))
	ts.Defer(func() { unmount(dir) })
}
