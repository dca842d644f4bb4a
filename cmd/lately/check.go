package main

import (
	"encoding/json"
	"fmt"

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
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := rules.Load(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"file": args[0], "rules": file.Sentences()})
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
