package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/wcodec/wcodec"
)

// app is one run of the command: the flags that all verbs share, and what the run has to show at its end.
type app struct {
	out        string
	stdout     bool
	force      bool
	keep, rm   bool
	workers    int
	device     string
	codec      string
	level      string
	quiet      int
	verbose    int
	json       bool
	noProgress bool
	dryRun     bool

	verb    string
	started bool         // the command line made sense; errors from here on are not usage
	grace   atomic.Int64 // a time.Duration, see cancelOnSignal
	bar     *bar
	result  result
}

func newApp() *app {
	a := &app{}
	a.grace.Store(int64(grace))
	return a
}

const rootLong = `wcodec packs neural-network checkpoints (safetensors and anything else) about a third smaller
and gives them back bit for bit.

  wcodec compress model.safetensors        writes model.safetensors.wcodec
  wcodec decompress model.safetensors.wcodec
  wcodec demo                              the whole story on generated data

Input is kept unless --rm is given. "-" is standard input or output.

Exit codes: 0 done, 1 I/O or runtime error, 2 usage, 3 corrupt input, 4 unsupported version or
feature, 5 output exists; 129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM (nothing half-written stays).`

// rootCmd builds the tree of verbs. The shared flags belong to the root, so that their order never matters.
func (a *app) rootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "wcodec",
		Short:         "A lossless codec for neural-network weights",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.sharedFlags(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.start(cmd) }
	verbs := []*cobra.Command{
		a.compressCmd(), a.decompressCmd(), a.testCmd(), a.verifyCmd(), a.listCmd(), a.inspectCmd(),
		a.extractCmd(), a.benchCmd(), a.synthCmd(), a.devicesCmd(), a.demoCmd(), a.manCmd(),
	}
	root.AddCommand(verbs...)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error { // cobra's own shows the root's help and is content
			if c, _, err := root.Find(args); err != nil || c == root && len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return nil
		}
	}
	for _, c := range append(verbs, root) {
		c.Version = version
		c.Flags().SortFlags = false
		c.SetVersionTemplate(`{{if not (.Flag "json").Changed}}wcodec {{.Version}}{{"\n"}}{{end}}`)
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	completeWith(root, "codec", wcodec.Codecs()...)
	completeWith(root, "level", "fast", "default", "dense")
	completeWith(root, "device", "auto", "cpu", "cuda")
	return root
}

func completeWith(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not there: a slip that every run of the command shows
	}
}

func (a *app) sharedFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&a.out, "output", "o", "", "write to `PATH`: a file, a directory, or - for standard output")
	f.BoolVarP(&a.stdout, "stdout", "c", false, "write to standard output")
	f.BoolVarP(&a.force, "force", "f", false, "replace an output that exists")
	f.BoolVarP(&a.keep, "keep", "k", false, "keep the input (the default)")
	f.BoolVar(&a.rm, "rm", false, "remove the input after success; ignored with standard output")
	f.IntVarP(&a.workers, "threads", "T", 0, "compute with `N` threads; 0: one a core")
	f.StringVar(&a.device, "device", "auto", "compute on `DEVICE`: auto, cpu, cuda or cuda:N")
	f.StringVar(&a.codec, "codec", "auto", "pack with one `CODE` instead of the best for each tensor: "+strings.Join(wcodec.Codecs(), ", "))
	f.StringVar(&a.level, "level", "default", "pack at `LEVEL` fast, default or dense")
	f.CountVarP(&a.quiet, "quiet", "q", "``no summary and no warnings; -qq: no errors either")
	f.CountVarP(&a.verbose, "verbose", "v", "``say more: the device, and what each input took")
	f.BoolVar(&a.json, "json", false, "print the result as one JSON object on standard output")
	f.BoolVar(&a.noProgress, "no-progress", false, "no progress bar")
	f.BoolVar(&a.dryRun, "dry-run", false, "write nothing, say the sizes")
	f.BoolP("version", "V", false, "print the version")
	f.BoolP("help", "h", false, "print help")
}

// outputFlags are those that mean nothing to a verb that writes no output.
var outputFlags = []string{"output", "stdout", "force", "keep", "rm", "dry-run"}

// packFlags are those that mean nothing to a verb that does not compress.
var packFlags = []string{"codec", "level"}

// ignores is the annotation of a verb that lists the shared flags which mean nothing to it.
func ignores(c *cobra.Command, flags ...[]string) *cobra.Command {
	c.Annotations = make(map[string]string)
	for _, fs := range flags {
		for _, f := range fs {
			c.Annotations[f] = "ignored"
		}
	}
	return c
}

var deviceName = regexp.MustCompile(`^(auto|cpu|cuda(:[0-9]+)?)$`)

// start checks the shared flags. From its success on, errors are not the command line's.
func (a *app) start(cmd *cobra.Command) error {
	switch {
	case a.stdout && a.out != "" && a.out != "-":
		return usagef("-c and -o %s contradict each other", a.out)
	case a.keep && a.rm:
		return usagef("-k and --rm contradict each other")
	case a.workers < 0:
		return usagef("-T %d: the number of threads is 0 or more", a.workers)
	case !deviceName.MatchString(a.device):
		return usagef("--device %s: there are auto, cpu, cuda and cuda:N", strconv.Quote(a.device))
	case a.quiet > 0 && a.verbose > 0:
		return usagef("-q and -v contradict each other")
	}
	if _, err := wcodec.ParseLevel(a.level); err != nil {
		return usageError{err}
	}
	if !slices.Contains(wcodec.Codecs(), a.codec) {
		return usagef("--codec %q: there are %s", a.codec, strings.Join(wcodec.Codecs(), ", "))
	}
	if a.out == "-" {
		a.out, a.stdout = "", true
	}
	a.started, a.verb = true, cmd.Name()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.Annotations[f.Name] != "" {
			a.warn("%s: --%s means nothing here and is ignored", cmd.Name(), f.Name)
		}
	})
	return nil
}

// options are the library's options for the flags given.
func (a *app) options() wcodec.Options {
	level, _ := wcodec.ParseLevel(a.level) // start checked it
	o := wcodec.Options{Workers: a.workers, Level: level, Codec: a.codec, Overwrite: a.force}
	if a.bar != nil {
		o.Progress = a.bar.update
	}
	return o
}

// wantsBar reports whether there is somebody to look at a bar.
func (a *app) wantsBar() bool {
	return a.quiet == 0 && !a.noProgress && term.IsTerminal(int(os.Stderr.Fd()))
}

// progress starts the run's bar over total plain bytes, where a bar is wanted.
func (a *app) progress(total int64) {
	if !a.wantsBar() {
		return
	}
	fd := int(os.Stderr.Fd())
	width := func() int {
		if w, _, err := term.GetSize(fd); err == nil {
			return w
		}
		return 80
	}
	a.bar = newBar(os.Stderr, width, time.Now, total)
}

// summary writes the one line at the end.
func (a *app) summary(format string, args ...any) {
	if a.json || a.quiet > 0 {
		return
	}
	a.bar.clear()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// exactly, atLeast and between check the number of arguments and name what is missing.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

func atLeast(n int, what string) cobra.PositionalArgs { return between(n, -1, what) }

func between(lo, hi int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < lo || hi >= 0 && len(args) > hi {
			return usagef("want %s, got %s", what, plural(len(args), "argument"))
		}
		return nil
	}
}
