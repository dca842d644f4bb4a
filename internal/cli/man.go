package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newMan returns the hidden command that writes the man pages, for packages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages to a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManPages(args[0], cmd.Root())
		},
	}
}

// writeManPages writes a page for cmd and for each command below it that is not
// hidden.
func writeManPages(dir string, cmd *cobra.Command) error {
	f, err := os.Create(filepath.Join(dir, pageName(cmd)+".1"))
	if err != nil {
		return err
	}
	if err := errors.Join(manPage(f, cmd), f.Close()); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			if err := writeManPages(dir, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manWidth is the width of the options, in columns.
const manWidth = 78

// manPage writes the page of cmd, in the macros of man(7).
func manPage(w io.Writer, cmd *cobra.Command) error {
	p := &page{}
	name := pageName(cmd)
	p.line(`.TH "%s" "1" "" "lately %s" "Lately"`, strings.ToUpper(name), roff(versionText()))
	p.section("NAME", roff(name)+` \- `+roff(cmd.Short))
	use := cmd.UseLine()
	if !cmd.Runnable() || cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	p.section("SYNOPSIS", `\fB`+roff(use)+`\fR`)
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	p.line(".SH DESCRIPTION")
	p.verbatim(text)
	if cmd.LocalFlags().HasAvailableFlags() {
		p.line(".SH OPTIONS")
		p.verbatim(cmd.LocalFlags().FlagUsagesWrapped(manWidth))
	}
	if cmd.Example != "" {
		p.line(".SH EXAMPLES")
		p.verbatim(cmd.Example)
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			others = append(others, pageName(c))
		}
	}
	for i := range others {
		others[i] = `\fB` + roff(others[i]) + `\fR(1)`
	}
	if len(others) > 0 {
		p.section("SEE ALSO", strings.Join(others, ", "))
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// A page is a man page that is being written.
type page struct{ text strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *page) section(title, text string) { p.line(".SH %s\n%s", title, text) }

// verbatim writes text whose lines stay as they are.
func (p *page) verbatim(text string) { p.line(".nf\n%s\n.fi", roff(strings.TrimRight(text, "\n"))) }

// roff escapes text, so that nothing in it is a command to the formatter.
func roff(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.ReplaceAll(line, `\`, `\e`)
		line = strings.ReplaceAll(line, "-", `\-`)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
