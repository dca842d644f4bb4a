package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/cli/migrate"
)

func newImport() *cobra.Command {
	var asJSON bool
	var folder string
	cmd := &cobra.Command{
		Use:   "import [flags] --patterns FOLDER fail2ban DIRECTORY",
		Short: "Write the jails and filters of fail2ban as a rules file and patterns",
		Long: `Import reads the configuration directory of fail2ban, such as /etc/fail2ban, and writes a rules file to standard output, with
the line that each rule is from. The filter of each enabled jail becomes a file of patterns in the folder of --patterns, and its
rule is about the events of this file. The end of the rules file lists the patterns of each log, in the syntax of --follow.

Nothing is guessed: settings that cannot be expressed, or only differently, are listed with their lines on standard error
and at the end of the rules file. The rules are in shadow mode: test the result on a log with lately replay before you enforce it.

Exit codes: 0 success; 1 a file could not be read, or the output could not be written; 2 the command line is wrong; 3 the
rules file was written, but some settings could not be expressed; 130 interrupted.`,
		Example: "  lately import fail2ban --patterns /etc/lately/patterns /etc/fail2ban > rules.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("import: missing: must be fail2ban, and its configuration directory")
			case args[0] != "fail2ban":
				return fmt.Errorf("import: %q: must be fail2ban", args[0])
			case len(args) != 2:
				return fmt.Errorf("DIRECTORY: %d arguments: must be the configuration directory of fail2ban, such as /etc/fail2ban", len(args)-1)
			case folder == "":
				return errors.New("--patterns: missing: must be a folder for the filters of the jails")
			}
			return nil
		},
		ValidArgs: []string{"fail2ban"},
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := importDirectory(args[1], folder)
			if err != nil {
				return inputErrorOf(err.Error())
			}
			return printImport(cmd.OutOrStdout(), result, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rules file and the missing settings as JSON")
	cmd.Flags().StringVar(&folder, "patterns", "", "write the filters as files of patterns to this `folder`, which is made if it is missing")
	return cmd
}

// importDirectory converts a configuration directory, and writes its filters to a folder.
func importDirectory(name, folder string) (*migrate.Result, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: must be the configuration directory of fail2ban, such as /etc/fail2ban", name)
	}
	result := migrate.Fail2ban(os.DirFS(name), folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, p := range result.Patterns {
		if err := os.WriteFile(filepath.Join(folder, p.Name), p.Data, 0o644); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// printImport prints a rules file, and what it lacks.
func printImport(out io.Writer, r *migrate.Result, asJSON bool) error {
	if asJSON {
		type answer struct {
			Rules    string                `json:"rules"`
			Patterns []migrate.PatternFile `json:"patterns,omitempty"`
			Notes    []migrate.Note        `json:"notes"`
		}
		if err := writeJSON(out, answer{string(r.Rules), r.Patterns, append([]migrate.Note{}, r.Notes...)}); err != nil {
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
