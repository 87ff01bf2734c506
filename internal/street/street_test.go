// Package street holds the one test that keeps imports inside the project running one way. It knows the order of the
// packages and nothing of what they do.
package street

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wcodec/wcodec"

// street says for every package which packages of the project it may import. A name that ends in /* stands for every
// package below it; "." is the root package. The longest name that fits a package rules it.
var street = []struct {
	pkg string
	may []string
}{
	{"tensor", nil},
	{"checksum", nil},
	{"safetensors", []string{"tensor"}},
	{"format", []string{"tensor", "safetensors", "checksum"}},
	{"store", nil},
	{"codec", []string{"tensor", "checksum"}},
	{"codec/*", []string{"tensor", "checksum", "codec", "codec/codectest"}},
	{"sched", []string{"tensor", "codec"}},
	{"synth", []string{"tensor", "safetensors", "checksum", "store"}},
	{"internal/*", nil},
	{".", []string{"tensor", "checksum", "safetensors", "format", "store", "codec", "codec/*", "sched"}},
	{"bench", []string{".", "synth"}},
	{"bench/*", []string{".", "synth", "bench"}},
	{"cmd/*", []string{".", "synth", "bench"}},
}

// fits reports whether the package pkg is meant by pattern.
func fits(pattern, pkg string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(pkg, dir+"/")
	}
	return pattern == pkg
}

// rule returns what pkg may import, and whether the street names it at all.
func rule(pkg string) (may []string, ok bool) {
	best := ""
	for _, s := range street {
		if fits(s.pkg, pkg) && len(s.pkg) > len(best) {
			best, may, ok = s.pkg, s.may, true
		}
	}
	return may, ok
}

// allowed reports whether pkg may import dep.
func allowed(pkg, dep string) bool {
	may, _ := rule(pkg)
	return slices.ContainsFunc(may, func(p string) bool { return fits(p, dep) })
}

// TestRule holds the rule itself to a few sentences of the design, so that a slip in the table shows.
func TestRule(t *testing.T) {
	for _, c := range []struct {
		pkg, dep string
		want     bool
	}{
		{"tensor", "codec", false},
		{"format", "codec", false},
		{"format", "tensor", true},
		{"codec", "format", false},
		{"codec/rans", "codec", true},
		{"codec/rans", "sched", false},
		{"sched", ".", false},
		{".", "codec/rans", true},
		{".", "synth", false},
		{"cmd/wcodec", ".", true},
		{"cmd/wcodec", "format", false},
		{"cmd/wcodec", "synth", true},
	} {
		if got := allowed(c.pkg, c.dep); got != c.want {
			t.Errorf("may %s import %s? the street says %v, the design %v", c.pkg, c.dep, got, c.want)
		}
	}
}

// TestOneWay reads the imports of every Go file of the module, whatever its build tags, tests aside, and compares them
// with the street.
func TestOneWay(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || isModule(p)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files++
		checkFile(t, p, rel, path.Dir(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("found %d Go files under %s: the walk did not see the module", files, root)
	}
}

func checkFile(t *testing.T, file, rel, pkg string) {
	t.Helper()
	if _, ok := rule(pkg); !ok {
		t.Errorf("%s: package %s is not on the street; say in internal/street what it may import", rel, pkg)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	for _, imp := range f.Imports {
		dep, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", rel, imp.Path.Value, err)
			continue
		}
		switch {
		case dep == module:
			dep = "."
		case strings.HasPrefix(dep, module+"/"):
			dep = strings.TrimPrefix(dep, module+"/")
		default:
			continue
		}
		if !allowed(pkg, dep) {
			t.Errorf("%s: %s may not import %s: the street runs the other way (internal/street)", rel, pkg, dep)
		}
	}
}

// isModule reports whether dir is the root of a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
