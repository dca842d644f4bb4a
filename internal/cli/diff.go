package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/replay"
)

// diffFlags is the flags of the diff command as they are given.
type diffFlags struct {
	answerFlags
	config  replay.DiffConfig
	inputs  inputFlags
	protect string
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff [flags] { OLD NEW FILE... | --addr ADDRESS NEW }",
		Short: "Compare two rules files on logs: who is newly refused, newly allowed, banned for longer",
		Long: `Diff judges the events of logs under the rules file OLD and under the rules file NEW, separately,
as lately replay --rules does, and reports the differences: events that only one of them refuses, by
--key, and keys whose bans differ in total length. Hot rules are not compared.

With --protect it fails if the new rules hurt any key of a list, for use before a change is deployed:
one key on each line, # for comments, and with --key client also networks such as 192.0.2.0/24. A key is
hurt if one of its events is newly refused, or if it is banned for longer.

With --addr it reads no log: a running server judges the events that it keeps (lately serve --keep-events) under its
rules and under NEW. Its rules do not change. The report names the time since which the server has all events, and what it does not include. The
token needs the role admin.
If the server cannot be reached or answers with an error, the exit code is 1; if the new rules hurt a protected key, it is 3.

` + logCodes,
		Example: `  lately diff rules.yaml rules-new.yaml access.log.gz
  lately diff --protect customers.txt rules.yaml rules-new.yaml access.log.*
  lately diff --addr 127.0.0.1:7380 --protect customers.txt rules-new.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkAddr(cmd, "it is for logs", "key", "protect", "top", "tz", "json"); err != nil {
				return err
			}
			if f.addr != "" {
				return f.live(cmd, args)
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config.Key, "key", "", "`KEY` by which events are listed: a field, client/24, or several with commas (default client)")
	flags.StringVar(&f.protect, "protect", "", "fail with exit code 3 if the new rules hurt a key in `FILE`")
	f.inputs.register(cmd, &f.config.Config)
	flags.IntVar(&f.config.Top, "top", 0, "report at most `N` keys and bans that differ (default 20)")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	f.registerAddr(cmd, access.Admin, "", "try NEW on the events that the server whose HTTP listener has this `ADDRESS` keeps, instead of logs")
	return cmd
}

func (f *diffFlags) run(cmd *cobra.Command, args []string) (err error) {
	if len(args) < 3 {
		return fmt.Errorf("diff: %d arguments: must be the old rules file, the new rules file and one or more logs", len(args))
	}
	c := &f.config
	if err := f.inputs.parse(cmd, args[2:], &c.Config); err != nil {
		return err
	}
	if c.Old, err = loadRules(cmd, args[0]); err != nil {
		return err
	}
	if c.New, err = loadRules(cmd, args[1]); err != nil {
		return err
	}
	if err := f.readProtected(); err != nil {
		return err
	}
	difference, err := reading(cmd, c.Progress, *c, replay.Diff)
	if err != nil {
		return inputProblem(err)
	}
	return f.report(cmd, difference)
}

// live compares the rules of a running server with a draft, on the events that it keeps.
func (f *diffFlags) live(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("diff: %d arguments: must be the new rules file alone with --addr", len(args))
	}
	if err := f.inputs.parse(cmd, nil, &f.config.Config); err != nil {
		return err
	}
	draft, err := loadRules(cmd, args[0])
	if err != nil {
		return err
	}
	if err := f.readProtected(); err != nil {
		return err
	}
	if text := strings.Join(f.config.Protect, ""); !utf8.ValidString(text) {
		return fmt.Errorf("--protect: %s: must be UTF-8 with --addr", f.protect)
	}
	request := api.TrialRequest{Rules: string(draft.Text), Field: f.config.Key, Top: f.config.Top, Protect: strings.Join(f.config.Protect, "\n")}
	c, err := f.client()
	if err != nil {
		return err
	}
	defer c.Close()
	trial, err := c.TryRules(cmd.Context(), request)
	if err == nil && trial.Changes == nil { // its version knows other rules
		err = &client.Error{Code: api.BadArg, Detail: "mistakes in the rules file", Mistakes: trial.Errors}
	}
	if err != nil {
		return serverFailed(cmd.Context(), c, err)
	}
	trial.Changes.New.Rules = draft.Name
	return f.report(cmd, replay.DifferenceOf(c.Addr(), &trial))
}

// readProtected reads the keys of --protect: the lines of a file without comments and surrounding
// spaces.
func (f *diffFlags) readProtected() error {
	if f.protect == "" {
		return nil
	}
	text, err := os.ReadFile(f.protect)
	if err != nil {
		return fmt.Errorf("--protect: %s: cannot be read: %w", f.protect, errors.Unwrap(err))
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			f.config.Protect = append(f.config.Protect, line)
		}
	}
	if len(f.config.Protect) == 0 {
		return fmt.Errorf("--protect: %s: no key: must have one in a line", f.protect)
	}
	return nil
}

// report prints the difference. It is an error if that hurts protected keys.
func (f *diffFlags) report(cmd *cobra.Command, difference *replay.Difference) error {
	problems := f.inputs.print(cmd, f.json, difference, difference.WriteText, difference.Problems)
	if hurt := len(difference.Hurt) + len(difference.HurtBans); hurt > 0 {
		problems = append(problems, fmt.Sprintf("--protect: %s: the new rules refuse or ban protected keys, see the report", f.protect))
		return &inputError{problems, exitProtected}
	}
	return inputErrorOf(problems...)
}
