// Command manpages writes the man pages of lately to a directory, for packages. The
// environment variable SOURCE_DATE_EPOCH is their date.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

// write writes a page for lately and for each of its commands.
func write(dir string) error {
	root := cli.Root()
	root.DisableAutoGenTag = true
	return writePages(root, dir)
}

func writePages(cmd *cobra.Command, dir string) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var page bytes.Buffer
	header := doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "lately " + cli.Version(), Manual: "Lately"}
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), nameArguments(cmd, page.Bytes()), 0o644)
}

// option is a flag of a page: its names, its default, and its help.
var option = regexp.MustCompile(`(?m)(?:^\.PP\n)?^((?:\\fB-\w\\fP, )?\\fB--([\w-]+)\\fP)\[?=.*\n\t(.*)$`)

// nameArguments writes each flag of a page as --help does: with the name of its argument, and its default
// after the help.
func nameArguments(cmd *cobra.Command, page []byte) []byte {
	return option.ReplaceAllFunc(page, func(text []byte) []byte {
		m := option.FindSubmatch(text)
		f := cmd.Flags().Lookup(string(m[2]))
		out := fmt.Appendf(nil, ".TP\n%s", m[1])
		if argument, _ := pflag.UnquoteUsage(f); argument != "" {
			out = fmt.Appendf(out, ` \fI%s\fP`, argument)
		}
		out = fmt.Appendf(out, "\n%s", m[3])
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			out = fmt.Appendf(out, " (default %s)", f.DefValue)
		}
		return out
	})
}
