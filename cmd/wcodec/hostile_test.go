package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/wcodec/wcodec/internal/hostile"
)

// Every hostile safetensors file ends with exit code 3, names the file, and leaves nothing; every odd one that is legal
// goes there and back.
func TestHostileSafetensors(t *testing.T) {
	for _, c := range hostile.Safetensors() {
		if c.Big && (c.Want == hostile.Accept || testing.Short()) {
			continue // the library's tests take the big ones that are legal; they are slow, not different
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, "x.safetensors")
			want := c.Data()
			if err := os.WriteFile(in, want, 0o666); err != nil {
				t.Fatal(err)
			}
			code, said := runIn(t, dir, "compress", "x.safetensors")
			if c.Want != hostile.Accept {
				if code != exitCorrupt || !strings.HasPrefix(said, "wcodec: x.safetensors: ") || strings.Count(said, "\n") != 1 {
					t.Errorf("exit code %d, said %q", code, said)
				}
				if list, _ := os.ReadDir(dir); len(list) != 1 {
					t.Errorf("left %v", list)
				}
				return
			}
			if code != 0 {
				t.Fatalf("exit code %d, said %q", code, said)
			}
			if code, said := runIn(t, dir, "decompress", "-o", "back", "x.safetensors.wcodec"); code != 0 {
				t.Fatalf("exit code %d, said %q", code, said)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("came back with %d bytes of %d, %v", len(got), len(want), err)
			}
		})
	}
}

// Every hostile shard index stops the directory around it.
func TestHostileIndex(t *testing.T) {
	for _, c := range hostile.Index() {
		if c.Want == hostile.Accept {
			continue // its shards would have to be there
		}
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "m"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "m", "model.safetensors.index.json"), c.Data(), 0o666); err != nil {
				t.Fatal(err)
			}
			if code, said := runIn(t, dir, "compress", "m"); code != exitCorrupt || !strings.Contains(said, "model.safetensors.index.json: ") {
				t.Errorf("exit code %d, said %q", code, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "m.wcodec")); err == nil {
				t.Error("an output was made")
			}
		})
	}
}

// runIn runs the command in dir and returns its exit code and what it said to standard error.
func runIn(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// A file cut off after any byte, or with any byte changed, is refused by test with exit code 3 (4 where the change makes
// it look like another version), whichever byte it is. Every byte is the library's own test; here a hundred of each are.
func TestDamageAnywhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte(strings.Repeat("some bytes ", 2000)), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, said := runIn(t, dir, "compress", "-q", "x"); code != 0 {
		t.Fatalf("exit code %d, said %q", code, said)
	}
	good, err := os.ReadFile(filepath.Join(dir, "x.wcodec"))
	if err != nil {
		t.Fatal(err)
	}
	step := len(good)/100 + 1
	for at := 0; at < len(good); at += step {
		flipped := bytes.Clone(good)
		flipped[at] ^= 1 << (at % 8)
		for what, b := range map[string][]byte{"cut off": good[:at], "flipped": flipped} {
			if err := os.WriteFile(filepath.Join(dir, "bad.wcodec"), b, 0o666); err != nil {
				t.Fatal(err)
			}
			code, said := runIn(t, dir, "test", "bad.wcodec")
			if code != exitCorrupt && code != exitUnsupported || !strings.HasPrefix(said, "wcodec: bad.wcodec: ") {
				t.Errorf("%s at byte %d: exit code %d, said %q", what, at, code, said)
			}
		}
	}
}

// A file from the future says so, with exit code 4.
func TestUnsupported(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("some bytes"), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, said := runIn(t, dir, "compress", "-q", "x"); code != 0 {
		t.Fatalf("exit code %d, said %q", code, said)
	}
	good, err := os.ReadFile(filepath.Join(dir, "x.wcodec"))
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]int{"version": 10, "requires unknown features": 23} {
		b := bytes.Clone(good)
		b[at] ^= 0x40
		binary.LittleEndian.PutUint64(b[56:], xxh3.Hash(b[:56])) // FORMAT section "Header"
		if err := os.WriteFile(filepath.Join(dir, "new.wcodec"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"test", "list", "decompress"} {
			code, said := runIn(t, dir, verb, "new.wcodec")
			if code != exitUnsupported || !strings.Contains(said, what) || !strings.Contains(said, "a newer wcodec may read it") {
				t.Errorf("%s %s: exit code %d, said %q", verb, what, code, said)
			}
		}
	}
}
