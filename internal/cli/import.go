package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/cli/migrate"
)

// maxImport is the size of the largest file that is imported, in bytes.
const maxImport = 1 << 20

func newImport() *cobra.Command {
	var asJSON bool
	var folder string
	cmd := &cobra.Command{
		Use:   "import [flags] fail2ban DIRECTORY|FILE...",
		Short: "Write the jails and filters of fail2ban as a rules file and patterns",
		Long: `Import reads the jails of fail2ban and writes a rules file to standard output, with the line that each rule is from.

DIRECTORY is its configuration directory, such as /etc/fail2ban. The filters of enabled jails are converted, too:
each becomes a file of patterns in the folder of --patterns, and its rule is about the events of this file. The end of the
rules file lists the patterns of each log, in the syntax of --follow. FILE is jail.conf, jail.local or a file of jail.d, in
the order in which fail2ban reads them, or - for standard input: filters are not converted then.

Nothing is guessed: settings that cannot be expressed, or only differently, are listed with their lines on standard error
and at the end of the rules file. The rules are in shadow mode: test the result on a log with lately replay before you enforce it.

Exit codes: 0 success; 1 a file could not be read, or the output could not be written; 2 the command line is wrong; 3 the
rules file was written, but some settings could not be expressed; 130 interrupted.`,
		Example: `  lately import fail2ban --patterns /etc/lately/patterns /etc/fail2ban > rules.yaml
  lately import fail2ban /etc/fail2ban/jail.conf /etc/fail2ban/jail.local > rules.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("import: missing: must be fail2ban, and files")
			case args[0] != "fail2ban":
				return fmt.Errorf("import: %q: must be fail2ban", args[0])
			case len(args) == 1:
				return fmt.Errorf("DIRECTORY: missing: must be that of fail2ban, or one or more of its files, or - for standard input")
			}
			return nil
		},
		ValidArgs: []string{"fail2ban"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var sources []migrate.Source
			if isFolder(args[1]) {
				return importDirectory(cmd.OutOrStdout(), args[1:], folder, asJSON)
			}
			if folder != "" {
				return fmt.Errorf("--patterns: must be with the directory of fail2ban, not with files: filters are in its filter.d")
			}
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rules file and the missing settings as JSON")
	cmd.Flags().StringVar(&folder, "patterns", "", "write the filters as files of patterns to this `folder`, which is made if it is missing")
	return cmd
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// importDirectory writes the rules of a configuration directory, and its filters to a folder.
func importDirectory(out io.Writer, names []string, folder string, asJSON bool) error {
	switch {
	case folder == "":
		return fmt.Errorf("--patterns: missing: must be a folder for the filters of the jails")
	case len(names) > 1:
		return fmt.Errorf("DIRECTORY: %d arguments: must be one directory, or files", len(names))
	}
	result := migrate.Fail2banDir(os.DirFS(names[0]), folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return inputErrorOf(err.Error())
	}
	for _, p := range result.Patterns {
		if err := os.WriteFile(filepath.Join(folder, p.Name), p.Data, 0o644); err != nil {
			return inputErrorOf(err.Error())
		}
	}
	return printImport(out, result, asJSON)
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
