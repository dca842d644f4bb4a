package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/rules"
)

func newCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a rules file and print every rule as a sentence",
		Long: `Check reads a rules file and prints every rule as a sentence. A file with mistakes is refused
with all of them, each with its line and column, what was found and what is allowed (exit code 2).`,
		Example: "  lately check rules.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("check has %d arguments; allowed is one, the path of a rules file", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := rules.Load(args[0])
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), file)
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"file": args[0], "rules": file.Sentences()})
			}
			for _, sentence := range file.Sentences() {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), sentence); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// warn writes the warnings about a rules file.
func warn(stderr io.Writer, file *rules.File) {
	for _, w := range file.Warnings {
		complain(stderr, "warning: "+w.Error())
	}
}
