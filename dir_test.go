package wcodec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wcodec/wcodec/tensor"
)

// makeDir writes files, by their paths below a new directory; a name that ends in a slash is an empty directory.
func makeDir(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	for name, b := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			p, b = filepath.Join(p, "x"), nil
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(p, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readDir is what makeDir took.
func readDir(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if list, _ := os.ReadDir(p); len(list) == 0 {
				files[filepath.ToSlash(rel)+"/"] = nil
			}
			return nil
		}
		files[filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameFiles(t testing.TB, got, want map[string][]byte) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("files are %q, want %q", g, w)
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

const shard1, shard2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

// sharded is a checkpoint of two shards with everything that stands around them.
func sharded(t testing.TB) map[string][]byte {
	index := `{"metadata": {"total_size": 1}, "weight_map": {"a": "` + shard1 + `", "b": "` + shard2 + `"}}`
	return map[string][]byte{
		shard1:                         build(t, plain{"a", tensor.BF16, []uint64{300, 400}, normal(tensor.BF16, 120000, 0.02, 1)}),
		shard2:                         build(t, plain{"b", tensor.BF16, []uint64{100, 400}, normal(tensor.BF16, 40000, 0.02, 2)}),
		"model.safetensors.index.json": []byte(index),
		"config.json":                  []byte("{}\n"),
		"tokenizer.model":              noise(5000, 3),
		"original/consolidated.pth":    noise(70000, 4),
		"original/params.json":         []byte("{ }"),
		"empty":                        nil,
		"logs/":                        nil,
	}
}

func TestDirRoundTrip(t *testing.T) {
	want := sharded(t)
	src := makeDir(t, want)
	dst := filepath.Join(t.TempDir(), "packed")
	var last Progress
	reports := 0
	stats, err := CompressDir(t.Context(), dst, src, Options{Progress: func(p Progress) {
		if p.Done < last.Done {
			t.Errorf("progress went back from %d to %d", last.Done, p.Done)
		}
		last = p
		reports++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Packed != 3 || stats.Copied != 5 || stats.Resumed != 0 || stats.Tensors != 2 {
		t.Errorf("stats are %+v", stats)
	}
	if last.Done != last.Total || last.Total != stats.PlainBytes || reports == 0 {
		t.Errorf("%d reports, the last %+v, of %d bytes", reports, last, stats.PlainBytes)
	}
	packed := readDir(t, dst)
	if !bytes.Equal(packed["model.safetensors.index.json"], want["model.safetensors.index.json"]) {
		t.Error("the original index is not there as it was")
	}
	if packed[shard1+".wcodec"] == nil || packed["original/consolidated.pth.wcodec"] == nil || packed["config.json"] == nil {
		t.Errorf("the packed directory has %q", slices.Sorted(maps.Keys(packed)))
	}

	d, err := OpenDir(dst)
	if err != nil {
		t.Fatal(err)
	}
	if d.WeightMap()["b"] != shard2+".wcodec" || len(d.WeightMap()) != 2 {
		t.Errorf("weight map is %v", d.WeightMap())
	}
	if s, err := d.Test(t.Context(), Options{}); err != nil || s.PlainBytes != stats.PlainBytes {
		t.Errorf("test: %+v, %v", s, err)
	}
	if _, err := d.Verify(t.Context(), src, Options{}); err != nil {
		t.Error(err)
	}

	back := filepath.Join(t.TempDir(), "back")
	if _, err := DecompressDir(t.Context(), back, dst, Options{}); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, readDir(t, back), want)
	// Verify sees a file too many, one too few, and one that differs, whether it is packed or copied.
	differ := func(what, name string, b []byte) {
		t.Helper()
		p := filepath.Join(back, name)
		old, err := os.ReadFile(p)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
		case b == nil:
			err = os.Remove(p)
		default:
			err = os.WriteFile(p, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Verify(t.Context(), back, Options{}); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: verify says %v", what, err)
		}
		if old == nil {
			err = os.Remove(p)
		} else {
			err = os.WriteFile(p, old, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	differ("lacks more", "more", []byte{})
	differ("has config.json", "config.json", nil)
	differ("config.json", "config.json", []byte("{}\r"))
	differ(`tensor "a"`, shard1, append(bytes.Clone(want[shard1][:len(want[shard1])-1]), 0))
	if _, err := d.Verify(t.Context(), back, Options{}); err != nil {
		t.Fatal(err)
	}

	// Neither way replaces what is there, unless it is asked to.
	if _, err := DecompressDir(t.Context(), back, dst, Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("decompressing over files: %v", err)
	}
	if _, err := CompressDir(t.Context(), dst, src, Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("compressing over a complete directory: %v", err)
	}
	if s, err := CompressDir(t.Context(), dst, src, Options{Overwrite: true}); err != nil || s.Resumed != 0 {
		t.Errorf("overwriting: %+v, %v", s, err)
	}
	sameFiles(t, readDir(t, dst), packed)
	if _, err := DecompressDir(t.Context(), back, dst, Options{Overwrite: true}); err != nil {
		t.Error(err)
	}
}

// A cancelled run leaves whole files only, and the next one keeps those that still match.
func TestDirResumes(t *testing.T) {
	want := sharded(t)
	src := makeDir(t, want)
	dst := filepath.Join(t.TempDir(), "packed")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := CompressDir(ctx, dst, src, Options{Progress: func(p Progress) {
		if p.Done >= int64(len(want[shard1])) {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled in the middle: %v", err)
	}
	if _, err := OpenDir(dst); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an interrupted directory opens: %v", err)
	}
	for name := range readDir(t, dst) {
		if strings.Contains(name, "tmp") {
			t.Errorf("%s was left behind", name)
		}
	}
	first := filepath.Join(dst, shard1+".wcodec")
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := CompressDir(t.Context(), dst, src, Options{})
	if err != nil || stats.Resumed == 0 {
		t.Fatalf("resuming: %+v, %v", stats, err)
	}
	after, err := os.Stat(first)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the finished shard was packed again")
	}

	// A shard of the same size and header that is newer than its packed form is not the one that was packed.
	if err := os.Remove(filepath.Join(dst, IndexName)); err != nil {
		t.Fatal(err)
	}
	late := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(src, shard1), late, late); err != nil {
		t.Fatal(err)
	}
	if _, err := CompressDir(t.Context(), dst, src, Options{}); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), shard1) {
		t.Errorf("resuming over the packed form of an older shard: %v", err)
	}
}

func TestDirRefuses(t *testing.T) {
	index := func(shard string) []byte {
		b, _ := json.Marshal(map[string]any{"weight_map": map[string]string{"a": shard}})
		return b
	}
	one := build(t, plain{"a", tensor.U8, []uint64{3}, []byte{1, 2, 3}})
	for name, c := range map[string]struct {
		files map[string][]byte
		is    error
	}{
		"a shard that is missing":     {map[string][]byte{"model.safetensors.index.json": index("x.safetensors")}, ErrCorrupt},
		"a shard above the directory": {map[string][]byte{"model.safetensors.index.json": index("../x.safetensors")}, ErrCorrupt},
		"a shard anywhere":            {map[string][]byte{"model.safetensors.index.json": index("/etc/passwd")}, ErrCorrupt},
		"a tensor listed twice":       {map[string][]byte{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"x","a":"x"}}`), "x": one}, ErrCorrupt},
		"an index that is none":       {map[string][]byte{"model.safetensors.index.json": []byte(`[`)}, ErrCorrupt},
		"a shard that is no shard":    {map[string][]byte{"x.safetensors": []byte("version https://git-lfs")}, ErrCorrupt},
		"a packed directory":          {map[string][]byte{IndexName: []byte("{}")}, nil},
		"both forms of a file":        {map[string][]byte{"x.bin": one, "x.bin.wcodec": one}, nil},
	} {
		dst := filepath.Join(t.TempDir(), "packed")
		_, err := CompressDir(t.Context(), dst, makeDir(t, c.files), Options{})
		if err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
		if _, err := os.Stat(filepath.Join(dst, IndexName)); err == nil {
			t.Errorf("%s: an index was written", name)
		}
	}
}

func TestDirLinks(t *testing.T) {
	src := makeDir(t, map[string][]byte{"config.json": []byte("{}")})
	target := write(t, "blob", build(t, plain{"a", tensor.U8, []uint64{3}, []byte{1, 2, 3}}))
	if err := os.Symlink(target, filepath.Join(src, "model.safetensors")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	dst := filepath.Join(t.TempDir(), "packed")
	if _, err := CompressDir(t.Context(), dst, src, Options{}); !errors.Is(err, ErrLink) {
		t.Fatalf("a link in the original: %v", err)
	}
	if _, err := CompressDir(t.Context(), dst, src, Options{FollowLinks: true}); err != nil {
		t.Fatal(err)
	}
	// In a packed directory links are refused always.
	p := filepath.Join(dst, "model.safetensors.wcodec")
	if err := os.Rename(p, p+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p+".moved", p); err != nil {
		t.Fatal(err)
	}
	if _, err := DecompressDir(t.Context(), filepath.Join(t.TempDir(), "back"), dst, Options{FollowLinks: true}); !errors.Is(err, ErrLink) {
		t.Errorf("a link in a packed directory: %v", err)
	}
}

func TestDirsApart(t *testing.T) {
	src := makeDir(t, map[string][]byte{"a/config.json": nil})
	for _, dst := range []string{src, filepath.Join(src, "packed", "here"), filepath.Dir(src), filepath.Join(src, "..", "model", "a")} {
		if _, err := CompressDir(t.Context(), dst, src, Options{Overwrite: true}); err == nil || !strings.Contains(err.Error(), "apart") {
			t.Errorf("%s into %s: %v", src, dst, err)
		}
	}
	if _, err := CompressDir(t.Context(), src+"-packed", src, Options{}); err != nil {
		t.Errorf("a name with the same beginning is another directory: %v", err)
	}
}

// Every lie in an index is found when it is opened, or at the latest when the file that it is about is read.
func TestDirIndexIsHeldToItsRules(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "packed")
	if _, err := CompressDir(t.Context(), dst, makeDir(t, sharded(t)), Options{}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dst, IndexName))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(x *dirIndex)
		is     error
	}{
		"format":            {func(x *dirIndex) { x.Metadata.Format = "pt" }, ErrCorrupt},
		"version":           {func(x *dirIndex) { x.Metadata.Version = 2 }, ErrUnsupported},
		"way":               {func(x *dirIndex) { x.Files[0].How = "sent" }, ErrCorrupt},
		"name above":        {func(x *dirIndex) { x.Files[0].Name = "../config.json" }, ErrCorrupt},
		"absolute name":     {func(x *dirIndex) { x.Files[0].Name = "/config.json" }, ErrCorrupt},
		"backslash":         {func(x *dirIndex) { x.Files[0].Name = `..\config.json` }, ErrCorrupt},
		"the index itself":  {func(x *dirIndex) { x.Files[0].Name = IndexName }, ErrCorrupt},
		"name twice":        {func(x *dirIndex) { x.Files = append(x.Files, x.Files[len(x.Files)-1]) }, ErrCorrupt},
		"names not sorted":  {func(x *dirIndex) { x.Files[0], x.Files[1] = x.Files[1], x.Files[0] }, ErrCorrupt},
		"stored elsewhere":  {func(x *dirIndex) { file(x, shard1).Stored = shard2 + ".wcodec" }, ErrCorrupt},
		"negative size":     {func(x *dirIndex) { x.Files[0].Size = -1 }, ErrCorrupt},
		"hash":              {func(x *dirIndex) { file(x, "config.json").SHA256 = "12" }, ErrCorrupt},
		"other hash":        {func(x *dirIndex) { file(x, "config.json").SHA256 = strings.Repeat("ab", 32) }, ErrCorrupt},
		"other size":        {func(x *dirIndex) { file(x, shard1).Size++ }, ErrCorrupt},
		"missing file":      {func(x *dirIndex) { file(x, "config.json").Name = "config2.json" }, ErrCorrupt},
		"tensor elsewhere":  {func(x *dirIndex) { x.WeightMap["a"] = "../x.wcodec" }, ErrCorrupt},
		"tensor in no pack": {func(x *dirIndex) { x.WeightMap["a"] = "config.json" }, ErrCorrupt},
	} {
		var x dirIndex
		if err := json.Unmarshal(good, &x); err != nil {
			t.Fatal(err)
		}
		c.change(&x)
		b, err := x.encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dst, IndexName), b, 0o666); err != nil {
			t.Fatal(err)
		}
		back := filepath.Join(t.TempDir(), "back")
		if _, err := DecompressDir(t.Context(), back, dst, Options{}); !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
		d, err := OpenDir(dst)
		if err != nil {
			continue
		}
		if _, err := d.Test(t.Context(), Options{}); !errors.Is(err, c.is) {
			t.Errorf("%s: test says %v, want %v", name, err, c.is)
		}
	}
}

func file(x *dirIndex, name string) *DirFile {
	return &x.Files[slices.IndexFunc(x.Files, func(f DirFile) bool { return f.Name == name })]
}

// Any bytes at all may stand in an index.
func FuzzDirIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"format":"wcodec","version":1},"files":[{"name":"a","how":"directory"}],"weight_map":{}}`))
	f.Add([]byte(`{"metadata":{"format":"wcodec","version":1},"files":[{"name":"a.bin","how":"packed","stored":"a.bin.wcodec"}],"weight_map":{"t":"a.bin.wcodec"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDir("model", b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%v is neither corrupt nor unsupported", err)
			}
			return
		}
		for _, x := range d.Files() {
			if !filepath.IsLocal(filepath.FromSlash(x.Name)) {
				t.Fatalf("%q leads out of the directory", x.Name)
			}
		}
	})
}

func TestBundleKeepsPaths(t *testing.T) {
	want := sharded(t)
	delete(want, "logs/")
	var srcs []Source
	for _, name := range slices.Sorted(maps.Keys(want)) {
		srcs = append(srcs, Source{Name: name, Reader: bytes.NewReader(want[name]), Size: int64(len(want[name]))})
	}
	p := filepath.Join(t.TempDir(), "bundle.wcodec")
	if _, err := CompressTo(t.Context(), p, srcs, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	back := filepath.Join(t.TempDir(), "back")
	var last Progress
	if _, err := r.ExtractAll(t.Context(), back, Options{Progress: func(p Progress) { last = p }}); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, readDir(t, back), want)
	if last.Done != last.Total || last.Total == 0 {
		t.Errorf("the last progress is %+v", last)
	}
}

func TestExtract(t *testing.T) {
	a := plain{"a", tensor.BF16, []uint64{300, 400}, normal(tensor.BF16, 120000, 0.02, 1)}
	b := plain{"b", tensor.U8, []uint64{3}, []byte{1, 2, 3}}
	c := plain{"c", tensor.F32, nil, []byte{0, 0, 128, 63}}
	r := open(t, pack(t, "m.safetensors", build(t, a, b, c), Options{}))
	var got bytes.Buffer
	if _, err := Extract(t.Context(), &got, []*Tensor{r.Tensors()[2], r.Tensors()[0]}, false, Options{}); err != nil {
		t.Fatal(err)
	}
	again := open(t, pack(t, "m.safetensors", got.Bytes(), Options{}))
	if len(again.Tensors()) != 2 || again.Tensors()[1].Digest() != r.Tensors()[0].Digest() || again.Tensors()[0].Name() != "c" {
		t.Errorf("extracted %d tensors", len(again.Tensors()))
	}
	got.Reset()
	if _, err := Extract(t.Context(), &got, r.Tensors()[:1], true, Options{}); err != nil || !bytes.Equal(got.Bytes(), a.data) {
		t.Errorf("raw bytes of a tensor differ, %v", err)
	}
	if _, err := Extract(t.Context(), &got, []*Tensor{r.Tensors()[0], r.Tensors()[0]}, false, Options{}); err == nil {
		t.Error("a tensor was taken twice into one file")
	}
}
