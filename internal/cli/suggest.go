package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/replay"
)

// suggestFlags is the flags of the suggest command as they are given.
type suggestFlags struct {
	config replay.SuggestConfig
	inputs inputFlags
	share  string
	json   bool
}

func newSuggest() *cobra.Command {
	var f suggestFlags
	cmd := &cobra.Command{
		Use:   "suggest [flags] FILE...",
		Short: "Write a rules file with limits that fit logs",
		Long: `Suggest writes a rules file to standard output. It first names the outliers: keys that look like
attackers (scans, logins that fail, floods), monitors, and crawlers. For each span (1s, 1m, 1h and 24h, if the
log is as long) the file has the smallest limit that refuses no other key. Failed requests and logins get
their own limits if an outlier has many of them. Monitors are under allow, crawlers beside it in comments.
With --share, all keys are treated alike: the limits are the smallest that never refuse this share of the keys.

Comments contain the number of keys that each limit, and the next lower one, refuses on the log, and the numbers of
refused and banned events. All figures come from a replay of the log with the code that enforces rules.

` + logCodes,
		Example: `  lately suggest access.log.gz > rules.yaml
  lately suggest --share 99 --group "path /login" --group "method POST" access.log`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.share, "share", "", "`PERCENT` of all keys that a limit must never refuse (default all except outliers)")
	flags.StringArrayVar(&f.config.Groups, "group", nil, "suggest limits for the events of `\"FIELD PATTERN\"`, too, such as \"path /login\" (repeatable)")
	flags.StringVar(&f.config.Key, "key", "", "`KEY` to count by, as in rules files: a field, client/24, \"user | client\", or several with commas (default client)")
	f.inputs.register(cmd, &f.config.Config)
	flags.BoolVar(&f.json, "json", false, "print JSON, with the rules file as a text in it")
	return cmd
}

func (f *suggestFlags) run(cmd *cobra.Command, args []string) error {
	c := &f.config
	if err := f.inputs.parse(cmd, args, &c.Config); err != nil {
		return err
	}
	var err error
	if !cmd.Flags().Changed("share") {
		c.Share = 0
	} else if c.Share, err = strconv.ParseFloat(f.share, 64); err != nil || !(c.Share > 0) {
		return fmt.Errorf("--share: %q: must be a percentage of more than 0 and at most 100, such as 99.9", f.share)
	}
	suggestion, err := reading(cmd, c.Progress, *c, replay.Suggest)
	if err != nil {
		return inputProblem(err)
	}
	text := func(out io.Writer, _ replay.TextStyle) error {
		_, err := io.WriteString(out, suggestion.Rules)
		return err
	}
	return inputErrorOf(f.inputs.print(cmd, f.json, suggestion, text, suggestion.Problems)...)
}
