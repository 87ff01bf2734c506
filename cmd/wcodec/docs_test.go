package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every field that --json can print stands in docs/CLI.md, and every verb in README.md.
func TestDocumented(t *testing.T) {
	cli, err := os.ReadFile(filepath.Join("..", "..", "docs", "CLI.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []result{
		&filesResult{}, &listResult{}, &inspectResult{}, &extractResult{}, &benchResult{}, &synthResult{}, &devicesResult{}, &demoResult{},
	} {
		for _, name := range jsonNames(reflect.TypeOf(r), nil) {
			if !strings.Contains(string(cli), "`"+name+"`") {
				t.Errorf("docs/CLI.md does not name the field %q of %T", name, r)
			}
		}
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	root := newApp().rootCmd()
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" && !strings.Contains(string(readme), "| `"+c.Name()) {
			t.Errorf("README.md has no line for the verb %q", c.Name())
		}
		checkHelp(t, c)
	}
}

// jsonNames are the names of all fields that encoding a value of type t can print.
func jsonNames(t reflect.Type, names []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return jsonNames(t.Elem(), names)
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" {
				names = append(names, name)
			}
			if name != "" || f.Anonymous {
				names = jsonNames(f.Type, names)
			}
		}
	}
	return names
}

// checkHelp holds a verb to what all have: a short description, and words for every flag.
func checkHelp(t *testing.T, c *cobra.Command) {
	t.Helper()
	if c.Short == "" || strings.HasSuffix(c.Short, ".") {
		t.Errorf("%s: short description %q", c.Name(), c.Short)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("%s: flag --%s is not explained", c.Name(), f.Name)
		}
	})
}
