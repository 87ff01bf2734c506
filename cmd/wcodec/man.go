package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCmd() *cobra.Command {
	cmd := ignores(&cobra.Command{
		Use:    "man [flags] -o DIR",
		Short:  "Write the man pages",
		Long:   "man writes a man page for every verb into DIR.",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.out == "" {
				return usagef("name a directory with -o")
			}
			if err := os.MkdirAll(a.out, 0o777); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // a date would make every run differ
			return doc.GenManTree(root, &doc.GenManHeader{Title: "WCODEC", Section: "1", Source: "wcodec " + version}, a.out)
		},
	}, packFlags)
	return cmd
}
