package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/rules"
)

func newValidate() *cobra.Command {
	var v validation
	cmd := &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Validate a rules file and print every rule as a sentence",
		Long: `Validate reads a rules file and prints every rule as a sentence. If the file has mistakes, it prints all of them, each with
line, column, the value and what it must be (exit code 2). Several files are validated as one set of rules, as lately serve
reads several --rules.

With --config it also validates a settings file of lately serve, and the rules files that it names unless others are given. It warns about a
rule that judges the events of several logs, of different formats, that the settings follow.

It warns about conditions on log and format that no followed log can meet.`,
		Example: "  lately validate rules.yaml\n  lately validate --config /etc/lately/lately.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && v.config == "" {
				return errors.New("validate: no file: must be at least one, the path of a rules file")
			}
			return nil
		},
		RunE: v.run,
	}
	cmd.Flags().BoolVar(&v.asJSON, "json", false, "print JSON")
	v.geo.register(cmd.Flags())
	cmd.Flags().StringVar(&v.config, "config", "", "settings `file` of lately serve")
	return cmd
}

// A validation has the flags of lately validate.
type validation struct {
	asJSON bool
	config string
	geo    geoFlag
}

func (v *validation) run(cmd *cobra.Command, args []string) error {
	var settings server.Config
	if v.config != "" {
		if err := validateSettings(&settings, v.config); err != nil {
			return err
		}
		if len(args) == 0 {
			args = settings.RulesFiles
		}
		if len(args) == 0 {
			return nil
		}
	}
	file, err := loadRules(cmd, args...)
	if err != nil {
		return err
	}
	db, err := geo.Open(append(v.geo, settings.Geo...)...)
	if err != nil {
		return err
	}
	if err := db.Check(file); err != nil {
		return err
	}
	warn(cmd, impossibleLogs(file))
	for _, sentence := range settings.MixedLogs(file) {
		complain(cmd.ErrOrStderr(), "warning: "+sentence)
	}
	if v.asJSON {
		return notWritten(writeJSON(cmd.OutOrStdout(), map[string]any{"file": file.Name, "rules": file.Sentences()}))
	}
	for _, sentence := range file.Sentences() {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), visible(sentence)); err != nil {
			return notWritten(err)
		}
	}
	return nil
}

// validateSettings reads a settings file into c, and validates it.
func validateSettings(c *server.Config, path string) error {
	if err := readSettings(c, path); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// loadRules loads rules files as one set, and writes their warnings to stderr.
func loadRules(cmd *cobra.Command, paths ...string) (*rules.File, error) {
	file, err := rules.Load(paths...)
	if err != nil {
		return nil, err
	}
	warn(cmd, file.Warnings)
	return file, nil
}

// warn writes warnings to stderr.
func warn(cmd *cobra.Command, warnings rules.Errors) {
	for _, w := range warnings {
		complain(cmd.ErrOrStderr(), "warning: "+w.Error())
	}
}
