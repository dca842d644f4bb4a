package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/migrate"
)

// importers are the tools whose files lately import reads.
var importers = map[string]func(...migrate.Source) *migrate.Result{
	"fail2ban":        migrate.Fail2ban,
	"nginx":           migrate.Nginx,
	"envoy-ratelimit": migrate.Envoy,
}

// maxImport is the size of the largest file that is imported, in bytes.
const maxImport = 1 << 20

func newImport() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import [flags] fail2ban|nginx|envoy-ratelimit FILE...",
		Short: "Write the limits and bans of fail2ban, nginx or Envoy as a rules file",
		Long: `Import reads the configuration of another tool and writes a rules file to standard output, with the line that each
rule is from. Nothing is guessed: what a rules file cannot express, or expresses differently, is named with its line on
standard error and at the end of the rules file. Rules that would hold for more events than there are in shadow mode. Test the
result on a log with lately replay before you enforce it.

fail2ban: the jails of jail.conf, jail.local and the files of jail.d, given in the order in which fail2ban reads them.
nginx: limit_req and limit_conn, with their zones; nginx -T prints a configuration with the files that it includes.
envoy-ratelimit: the descriptors of envoyproxy/ratelimit, whose keys are fields of events.
FILE - is standard input.

Exit codes: 0 success; 1 a file could not be read, or the output could not be written; 2 the command line is wrong; 3 the
rules file was written, but not all could be expressed; 130 interrupted.`,
		Example: `  lately import fail2ban /etc/fail2ban/jail.conf /etc/fail2ban/jail.local > rules.yaml
  nginx -T | lately import nginx - > rules.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("import: missing: must be fail2ban, nginx or envoy-ratelimit, and files")
			case importers[args[0]] == nil:
				return fmt.Errorf("import: %q: must be fail2ban, nginx or envoy-ratelimit", args[0])
			case len(args) == 1:
				return fmt.Errorf("FILE: missing: must be at least one file of %s, or - for standard input", args[0])
			}
			return nil
		},
		ValidArgs: []string{"fail2ban", "nginx", "envoy-ratelimit"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var sources []migrate.Source
			for _, name := range args[1:] {
				data, err := readImport(name, cmd.InOrStdin())
				if err != nil {
					return inputErrorOf(err.Error())
				}
				sources = append(sources, migrate.Source{Name: cmp.Or(strings.TrimPrefix(name, "-"), "stdin"), Data: data})
			}
			return printImport(cmd.OutOrStdout(), importers[args[0]](sources...), asJSON)
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
