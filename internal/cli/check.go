package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/ratelimit"
)

func newCheck() *cobra.Command {
	var event map[string]string
	cmd := &cobra.Command{
		Use:   "check [flags] FIELD=VALUE...",
		Short: "Judge one event on a running server, as a proxy or a program does",
		Long: `Check sends one event to a running server, which counts it and judges it under every rule that matches, and prints the
decision as a sentence. To look at a key without counting, use lately key. The token needs the role check.

Exit codes: 0 the event is allowed; 1 the server cannot be reached or answers with an error, or the output could not be
written; 2 the command line is wrong, and nothing was done; 3 the event is refused; 130 interrupted.`,
		Example: `  lately check client=203.0.113.9 path=/login method=POST
  lately check --json client=203.0.113.9`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			event, err = eventOf(args)
			return err
		},
	}
	refused := false
	asks(cmd, access.Check, func(ctx context.Context, c *client.Client, _ []string) (api.Decision, error) {
		d, err := c.Check(ctx, event, 1)
		refused = !d.Allowed
		return decisionOf(&d), err
	}, func(w io.Writer, d api.Decision) { fmt.Fprintln(w, decisionText(&d)) })
	decide := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := decide(cmd, args); err != nil || !refused {
			return err
		}
		return &inputError{code: exitRefused}
	}
	return cmd
}

// eventOf returns the event of arguments such as client=192.0.2.1.
func eventOf(args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("check: no FIELD=VALUE: must be at least one, such as client=203.0.113.9")
	}
	event := make(map[string]string, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("check: %q: must be FIELD=VALUE, such as client=203.0.113.9", arg)
		}
		if _, twice := event[name]; twice {
			return nil, fmt.Errorf("check: field %q: must be given once", name)
		}
		event[name] = value
	}
	return event, nil
}

// decisionOf returns d as the API has it.
func decisionOf(d *ratelimit.Decision) api.Decision {
	out := api.Decision{
		Allowed: d.Allowed, Rule: d.Rule, Limit: d.Limit, Remaining: d.Remaining,
		RetryAfter: api.MillisOf(d.RetryAfter), ResetAfter: api.MillisOf(d.ResetAfter), Delay: api.MillisOf(d.Delay), Missing: d.Missing,
	}
	if !d.BannedUntil.IsZero() {
		out.BannedUntil = api.Millis(d.BannedUntil.UnixMilli())
	}
	return out
}

// decisionText returns the sentence of a decision about an event.
func decisionText(d *api.Decision) string {
	rule := visible(d.Rule)
	switch {
	case d.BannedUntil > 0:
		return fmt.Sprintf("refused: banned under %s until %s UTC", rule, stamp(time.UnixMilli(int64(d.BannedUntil))))
	case d.Missing != "":
		return fmt.Sprintf("refused by %s: the event has no %s", rule, visible(d.Missing))
	case !d.Allowed && d.RetryAfter < 0:
		return fmt.Sprintf("refused by %s: its limit is %d, and no waiting helps", rule, d.Limit)
	case !d.Allowed && d.RetryAfter == 0:
		return fmt.Sprintf("refused by %s: %s", rule, storeAway)
	case !d.Allowed:
		return fmt.Sprintf("refused by %s: %d of %d left, allowed again in %s", rule, d.Remaining, d.Limit, lasting(d.RetryAfter.Duration()))
	case d.Rule == "":
		return "allowed: no rule limits this event"
	case d.Delay > 0:
		return fmt.Sprintf("allowed by %s after a wait of %s: %d of %d left", rule, lasting(d.Delay.Duration()), d.Remaining, d.Limit)
	}
	return fmt.Sprintf("allowed by %s: %d of %d left", rule, d.Remaining, d.Limit)
}
