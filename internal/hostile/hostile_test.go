package hostile

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the small cases to testdata/hostile")

// TestFilesOnDisk compares the files in testdata/hostile, which are there for readers in other languages, with what is
// generated. Run with -update after a change of the corpus.
func TestFilesOnDisk(t *testing.T) {
	for kind, list := range map[string][]Case{"safetensors": Safetensors(), "index": Index()} {
		dir := filepath.Join("..", "..", "testdata", "hostile", kind)
		want := make(map[string][]byte)
		for _, c := range list {
			if c.Big {
				continue
			}
			name := c.Want.String() + "-" + c.Name + ".bin"
			if _, twice := want[name]; twice {
				t.Fatalf("two cases %s", c.Name)
			}
			want[name] = c.Data()
		}
		if *update {
			if err := write(dir, want); err != nil {
				t.Fatal(err)
			}
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			got, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			data, ok := want[f.Name()]
			if !ok || !bytes.Equal(got, data) {
				t.Errorf("%s is not what is generated", f.Name())
			}
			delete(want, f.Name())
		}
		for name := range want {
			t.Errorf("%s is not in %s", name, dir)
		}
	}
}

func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
