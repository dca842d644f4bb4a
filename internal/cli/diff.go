package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// diffFlags is the flags of the diff command as they are given.
type diffFlags struct {
	config  replay.DiffConfig
	inputs  inputFlags
	protect string
	json    bool
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff [flags] OLD NEW FILE...",
		Short: "Compare two rules files on logs: who is newly refused, newly allowed, banned for longer",
		Long: `Diff judges the events of logs under the rules file OLD and under the rules file NEW, each by itself
as lately replay --rules does, and reports the differences: events that only one of them refuses, by
--key, and keys that are banned for another time in all. Hot rules are not compared.

With --protect it fails if the new rules hurt any key of a list, for use before a change is deployed:
one key in a line, # for comments, and with --key client also networks such as 192.0.2.0/24. A key is
hurt if an event of it is newly refused, or if it is banned for longer.

Exit codes: 0 success, with differences or without; 1 a file could not be read, or not to its end, or
no event has a field that a rule needs or is in the cut, or the output could not be written; 2 the
command line or a rules file is wrong; 3 the new rules hurt a protected key; 130 interrupted.`,
		Example: `  lately diff rules.yaml rules-new.yaml access.log.gz
  lately diff --protect customers.txt rules.yaml rules-new.yaml access.log.*`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 3 {
				return fmt.Errorf("diff: %d arguments: must be the old rules file, the new rules file and one or more logs", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config.Key, "key", "", "`FIELD` by which events are listed (default client)")
	flags.StringVar(&f.protect, "protect", "", "fail with exit code 3 if the new rules hurt a key in `FILE`")
	f.inputs.register(cmd, &f.config.Config)
	flags.IntVar(&f.config.Top, "top", 0, "report at most `N` keys and bans that differ (default 20)")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *diffFlags) run(cmd *cobra.Command, args []string) (err error) {
	c := &f.config
	if err := f.inputs.parse(cmd, args[2:], &c.Config); err != nil {
		return err
	}
	for i, file := range []**rules.File{&c.Old, &c.New} {
		if *file, err = rules.Load(args[i]); err != nil {
			return err
		}
		warn(cmd.ErrOrStderr(), *file)
	}
	if f.protect != "" {
		if c.Protect, err = readKeys(f.protect); err != nil {
			return fmt.Errorf("--protect: %w", err)
		}
	}
	difference, err := reading(cmd, c.Progress, *c, replay.Diff)
	if err != nil {
		return inputProblem(err)
	}
	problems := f.inputs.print(cmd, f.json, difference, difference.WriteText, difference.Problems)
	if hurt := len(difference.Hurt) + len(difference.HurtBans); hurt > 0 {
		problems = append(problems, fmt.Sprintf("--protect: %s: the new rules refuse or ban protected keys, see the report", f.protect))
		return &inputError{problems, exitProtected}
	}
	return inputErrorOf(problems...)
}

// readKeys returns the lines of a file without comments and surrounding spaces.
func readKeys(path string) (keys []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, errors.Unwrap(err))
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no key: must have one in a line", path)
	}
	return keys, nil
}
