package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wcodec/wcodec/safetensors"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sums are the hashes of the files of a directory, by name.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string][32]byte)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = sha256.Sum256(b)
	}
	return m
}

// TestWrite writes small checkpoints and reads them back: headers, index and data.
func TestWrite(t *testing.T) {
	for _, c := range []struct {
		o     Options
		files int
	}{
		{Options{Model: "llama-3-8b", Shrink: 64, Seed: 1}, 4 + 6},
		{Options{Model: "llama-2-7b", Shrink: 64, Seed: 2}, 2 + 6},
		{Options{Model: "deepseek-fp8", Layers: 2, Shrink: 64, Seed: 3}, 0},
		{Options{Model: "tinyllama-int8", Layers: 3, Shrink: 16}, 1 + 5},
		{Options{Model: "edge"}, 1},
	} {
		dir := filepath.Join(t.TempDir(), "new", "place")
		if err := Write(context.Background(), dir, c.o); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.files != 0 && len(entries) != c.files {
			t.Errorf("%s: %d files, want %d: %v", c.o.Model, len(entries), c.files, entries)
		}
		shards, err := Plan(c.o)
		if err != nil {
			t.Fatal(err)
		}
		headers, size := make(map[string]*safetensors.Header), uint64(0)
		for i := range shards {
			s := &shards[i]
			b, err := os.ReadFile(filepath.Join(dir, s.File))
			if err != nil {
				t.Fatal(err)
			}
			h, err := safetensors.Parse(b, int64(len(b)))
			if err == nil {
				err = h.CheckSize(int64(len(b)))
			}
			if err != nil {
				t.Fatalf("%s: %v", s.File, err)
			}
			headers[s.File] = h
			size += s.DataSize
			if len(h.Tensors) != len(s.Tensors) {
				t.Fatalf("%s has %d tensors, want %d", s.File, len(h.Tensors), len(s.Tensors))
			}
			g := NewGenerator(c.o.Seed)
			for j := range h.Tensors {
				x, y := &h.Tensors[j], &s.Tensors[j]
				data := b[h.DataOffset()+x.Begin : h.DataOffset()+x.End]
				if x.Name != y.Name || x.DType != y.DType || !bytes.Equal(data, all(t, g, y)) {
					t.Fatalf("%s: tensor %d, %q, is not the planned one", s.File, j, x.Name)
				}
			}
		}
		if len(shards) == 1 {
			if _, err := os.Stat(filepath.Join(dir, indexName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: an index beside a single shard", c.o.Model)
			}
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, indexName))
		if err != nil {
			t.Fatal(err)
		}
		x, err := safetensors.ParseIndex(b)
		if err != nil {
			t.Fatal(err)
		}
		if x.TotalSize != int64(size) {
			t.Errorf("%s: the index says %d bytes, want %d", c.o.Model, x.TotalSize, size)
		}
		for _, p := range safetensors.Check(x, headers) {
			t.Errorf("%s: %v", c.o.Model, p)
		}
	}
}

// TestIndexText holds the index to the text that transformers writes.
func TestIndexText(t *testing.T) {
	b, err := appendJSON(index([]Shard{
		{File: "model-00001-of-00002.safetensors", DataSize: 10, Tensors: []Tensor{{Name: "b.weight"}, {Name: "a<b"}}},
		{File: "model-00002-of-00002.safetensors", DataSize: 5, Tensors: []Tensor{{Name: "aa"}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "metadata": {
    "total_size": 15
  },
  "weight_map": {
    "a<b": "model-00001-of-00002.safetensors",
    "aa": "model-00002-of-00002.safetensors",
    "b.weight": "model-00001-of-00002.safetensors"
  }
}
`
	if string(b) != want {
		t.Errorf("the index is\n%s", b)
	}
}

// TestSideFiles checks that the small files are JSON and that the configuration fits the tensors.
func TestSideFiles(t *testing.T) {
	for _, model := range Models() {
		if model == "edge" || model == "tiny" {
			continue
		}
		dir := t.TempDir()
		o := Options{Model: model, Layers: 2, Shrink: 64}
		if err := Write(context.Background(), dir, o); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
		} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			var v map[string]any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatalf("%s: %s: %v", model, name, err)
			}
			if name != "config.json" {
				continue
			}
			embed := map[string]string{"gpt2": "wte.weight", "pythia-410m": "gpt_neox.embed_in.weight"}[model]
			if embed == "" {
				embed = "model.embed_tokens.weight"
			}
			x := find(t, o, embed)
			hidden := v["hidden_size"]
			if hidden == nil {
				hidden = v["n_embd"]
			}
			if v["vocab_size"] != float64(x.Shape[0]) || hidden != float64(x.Shape[1]) {
				t.Errorf("%s: vocabulary %v of width %v, the embedding is %v", model, v["vocab_size"], hidden, x.Shape)
			}
		}
	}
}

// TestWorkers checks that the number of workers and a second run over the first change nothing.
func TestWorkers(t *testing.T) {
	o := Options{Model: "llama-3-8b", Shrink: 24, Seed: 4, Workers: 1}
	one, many := t.TempDir(), t.TempDir()
	if err := Write(context.Background(), one, o); err != nil {
		t.Fatal(err)
	}
	var last, total int64
	o.Workers = 5
	o.Progress = func(done, all int64) {
		if done <= last || done > all {
			t.Errorf("progress goes from %d to %d of %d", last, done, all)
		}
		last, total = done, all
	}
	for range 2 {
		last = 0
		if err := Write(context.Background(), many, o); err != nil {
			t.Fatal(err)
		}
		if last != total || total < 27<<20 {
			t.Errorf("progress ends at %d of %d", last, total)
		}
	}
	a, b := sums(t, one), sums(t, many)
	if len(a) != len(b) || len(a) < 6 {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for name, sum := range a {
		if b[name] != sum {
			t.Errorf("%s depends on the number of workers", name)
		}
	}
}

// TestCancel checks that a cancelled run says so and leaves no part of a file.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Model: "llama-3-8b", Layers: 1, Shrink: 4, Workers: 2}
	o.Progress = func(done, total int64) {
		if done > total/3 {
			cancel()
		}
	}
	if err := Write(ctx, dir, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want context.Canceled", err)
	}
	if m := sums(t, dir); len(m) != 0 {
		t.Errorf("%d files are left", len(m))
	}
	if err := Stream(ctx, &bytes.Buffer{}, Options{Model: "edge"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(context.Background(), filepath.Join(file, "dir"), Options{Model: "gpt2", Shrink: 64}); err == nil {
		t.Error("a directory inside a file was made")
	}
	if err := Write(context.Background(), filepath.Join(dir, "x"), Options{Model: "nobody"}); !errors.Is(err, ErrModel) {
		t.Errorf("%v, want ErrModel", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a refused model left a directory")
	}
	var sb strings.Builder
	if err := Stream(context.Background(), &sb, Options{Model: "llama-3-8b", Shrink: 64}); !errors.Is(err, ErrRange) || sb.Len() > 0 {
		t.Errorf("streaming four shards: %v, want ErrRange", err)
	}
}
