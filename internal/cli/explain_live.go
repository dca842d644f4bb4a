package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

// live explains from what a running server refused.
func (f *explainFlags) live(cmd *cobra.Command, args []string) error {
	if err := onlyWithout(cmd, forLogs, "server", "key", "json"); err != nil {
		return err
	}
	switch {
	case len(args) > 0:
		return fmt.Errorf("FILE: %q: must not be given with --server", args[0])
	case f.config.Value == "":
		return errors.New("--key: missing: must be a client or another value, such as 192.0.2.1")
	}
	return answer(cmd, &f.answerFlags, func(ctx context.Context, c *client.Client) (api.Explanation, error) {
		return c.Explain(ctx, f.config.Value)
	}, refusalLines)
}

// forLogs is why --server does not use a flag.
const forLogs = "it is for logs"

// onlyWithout returns an error, with why, if a flag was given besides these, which --server does not use.
func onlyWithout(cmd *cobra.Command, why string, used ...string) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(used, flag.Name) && !slices.Contains(connectNames[:], flag.Name) {
			err = fmt.Errorf("--%s: must not be given with --server: %s", flag.Name, why)
		}
	})
	return err
}

// notForLogs returns an error if a flag was given that only --server uses.
func notForLogs(cmd *cobra.Command) error {
	for _, name := range connectNames {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: must be given with --server: logs are read without a connection", name)
		}
	}
	return nil
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

// refusedEvent says what was refused, and why.
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
