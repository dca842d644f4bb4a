package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/cli/migrate"
)

// maxImport is the size of the largest file that is imported, in bytes.
const maxImport = 1 << 20

func newImport() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [flags] fail2ban FILE...",
		Short: "Write the jails of fail2ban as a rules file",
		Long: `Import reads the jails of fail2ban and writes a rules file to standard output, with the line that each rule is from.
FILE is jail.conf, jail.local and the files of jail.d, in the order in which fail2ban reads them, or - for standard input.

Nothing is guessed: what a rules file cannot express, or expresses differently, is named with its line on standard error and
at the end of the rules file. The rules are in shadow mode, because a rules file has no filters of lines: write what a filter
selects as when, and test the result on a log with lately replay before you enforce it.

Exit codes: 0 success; 1 a file could not be read, or the output could not be written; 2 the command line is wrong; 3 the
rules file was written, but not all could be expressed; 130 interrupted.`,
		Example: `  lately import fail2ban /etc/fail2ban/jail.conf /etc/fail2ban/jail.local > rules.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("import: missing: must be fail2ban, and files")
			case args[0] != "fail2ban":
				return fmt.Errorf("import: %q: must be fail2ban", args[0])
			case len(args) == 1:
				return fmt.Errorf("FILE: missing: must be at least one file of fail2ban, or - for standard input")
			}
			return nil
		},
		ValidArgs: []string{"fail2ban"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var sources []migrate.Source
			for _, name := range args[1:] {
				data, err := readImport(name, cmd.InOrStdin())
				if err != nil {
					return inputErrorOf(err.Error())
				}
				sources = append(sources, migrate.Source{Name: cmp.Or(strings.TrimPrefix(name, "-"), "stdin"), Data: data})
			}
			return printImport(cmd.OutOrStdout(), migrate.Fail2ban(sources...), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rules file and what it lacks as JSON")
	return cmd
}

// readImport reads a file, or standard input for "-".
func readImport(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close() // read only
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	if err == nil && len(data) > maxImport {
		err = fmt.Errorf("%s: too long (max %d bytes)", name, maxImport)
	}
	return data, err
}

// printImport prints a rules file, and what it lacks.
func printImport(out io.Writer, r *migrate.Result, asJSON bool) error {
	if asJSON {
		type answer struct {
			Rules string         `json:"rules"`
			Notes []migrate.Note `json:"notes"`
		}
		if err := writeJSON(out, answer{string(r.Rules), append([]migrate.Note{}, r.Notes...)}); err != nil {
			return notWritten(err)
		}
	} else if _, err := out.Write(r.Rules); err != nil {
		return notWritten(err)
	}
	if len(r.Notes) == 0 {
		return nil
	}
	lacks := &inputError{code: exitNotExpressed}
	for _, n := range r.Notes {
		lacks.sentences = append(lacks.sentences, n.String())
	}
	return lacks
}
