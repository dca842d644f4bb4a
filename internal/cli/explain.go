package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/replay"
)

// explainFlags is the flags of the explain command as they are given.
type explainFlags struct {
	answerFlags
	config replay.ExplainConfig
	inputs inputFlags
	rules  []string
	at     string
}

func newExplain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain [flags] --key KEY { --rules FILE FILE... | --addr ADDRESS }",
		Short: "Explain why a client was refused: the rule, the events in its window, the ban",
		Long: `Explain judges the events of logs under a rules file, as lately replay --rules does, and explains one
decision about --key: the meaning of the rules, the events that filled the window of the limit, with file
and line, the ban and its first event, and the time from which a request is allowed.

KEY is a client or another value that a rule counts by, such as a user or a path. Without --at, its last
refused event is explained, or its last event if none was refused; with --at, its last event at or
before that time.

With --addr it reads no log, but gets the recent refusals of keys with the value KEY from a running server: their number
and first time, one of the events, the current decision of each rule, and the ban. The server keeps the recent refusals of
some 16,000 keys; the answer has the time from which they are complete. The token needs the role read.
If no rule judges an event of the key, or the server cannot be reached or answers with an error, the exit code is 1.

` + logCodes,
		Example: `  lately explain --rules rules.yaml --key 203.0.113.245 access.log.gz
  lately explain --rules rules.yaml --key /login --at "2026-03-02 13:56" access.log
  lately explain --addr 127.0.0.1:7380 --key 203.0.113.245`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkAddr(cmd, "it is for logs", "key", "json"); err != nil {
				return err
			}
			if f.addr != "" {
				return f.live(cmd, args)
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.rules, "rules", nil, "rules `FILE`; several are one set of rules (required without --addr)")
	flags.StringVar(&f.config.Value, "key", "", "`KEY` to explain: a client, a user, a path (required)")
	flags.StringVar(&f.at, "at", "", "explain the last event at or before `TIME`, such as \"2024-01-29 10:05\", or -2h: two hours before the log's end")
	f.inputs.register(cmd, &f.config.Config)
	flags.BoolVar(&f.json, "json", false, "print the explanation as JSON")
	f.registerAddr(cmd, access.Read, "", "ask the server whose HTTP listener has this `ADDRESS`, instead of logs")
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, args []string) (err error) {
	c := &f.config
	if err := f.inputs.parse(cmd, args, &c.Config); err != nil {
		return err
	}
	for _, name := range []string{"rules", "key"} {
		if !cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: missing: must be given, as in --rules rules.yaml --key 192.0.2.1", name)
		}
	}
	if cmd.Flags().Changed("at") {
		if c.At, err = replay.ParseBound(f.at, f.inputs.zone); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	if c.Rules, err = loadRules(cmd, f.rules...); err != nil {
		return err
	}
	explanation, err := reading(cmd, c.Progress, *c, replay.Explain)
	if err != nil {
		return inputProblem(err)
	}
	return inputErrorOf(f.inputs.print(cmd, f.json, explanation, explanation.WriteText, explanation.Problems)...)
}

// live explains from what a running server refused.
func (f *explainFlags) live(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("FILE: %q: must not be given with --addr", args[0])
	case f.config.Value == "":
		return errors.New("--key: missing: must be a client or another value, such as 192.0.2.1")
	}
	return answer(cmd, &f.answerFlags, func(ctx context.Context, c *client.Client) (api.Explanation, error) {
		return c.Explain(ctx, f.config.Value)
	}, refusalLines)
}

func refusalLines(w io.Writer, x api.Explanation) {
	key := shown(x.Values...)
	if len(x.Refusals) == 0 {
		fmt.Fprintf(w, "%s: not refused since %s UTC\n", key, stamp(x.Since))
		return
	}
	for i := range x.Refusals {
		r := &x.Refusals[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s %s: refused %s by %s, from %s to %s UTC\n", visible(strings.Join(r.Fields, ", ")), shown(r.Values()...),
			times(r.Count), visible(r.Rule), stamp(r.First), stamp(r.Last))
		explainProxy(w, r.Values())
		fmt.Fprintf(w, "  %s\n", visible(r.Sentence))
		fmt.Fprintf(w, "  event:\t%s\n", refusedEvent(&r.Example))
		if r.Now != nil {
			fmt.Fprintf(w, "  now:\t%s\n", nextDecision(r.Now))
		}
		if b := r.Ban; b != nil {
			fmt.Fprintf(w, "  ban:\t%s\n", banText(b))
		}
	}
	fmt.Fprintf(w, "\nKeys that were last refused before %s UTC may be missing.\n", stamp(x.Since))
}

// refusedEvent returns a refused event and the reason as text.
func refusedEvent(e *api.RefusedEvent) string {
	text := stamp(e.Time) + " UTC"
	for _, field := range []string{e.Method, e.Host, e.Path} {
		if field != "" {
			text += " " + shown(field)
		}
	}
	d := &e.Decision
	switch {
	case d.BannedUntil > 0:
		return text + ": refused by the ban"
	case d.Missing != "":
		return fmt.Sprintf("%s: refused, it had no %s", text, visible(d.Missing))
	case d.RetryAfter == 0:
		return text + ": refused, " + storeAway
	case d.RetryAfter < 0:
		return fmt.Sprintf("%s: refused, its limit is %d, and no waiting helps", text, d.Limit)
	}
	return fmt.Sprintf("%s: refused, %d of %d left, allowed %s later if no other came", text, d.Remaining, d.Limit, lasting(d.RetryAfter.Duration()))
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
