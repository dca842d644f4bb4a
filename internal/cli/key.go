package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
)

// A keyAnswer is what a server knows about a key, once for each list of fields that the
// key may be of.
type keyAnswer struct {
	Keys []api.KeyReport `json:"keys"`
}

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key [flags] KEY...",
		Short: "Show the counts, decisions and bans of a key on a running server",
		Long: `Key shows the state of a key on a running server: its counts, the decision of each rule about its next event, and its
bans. KEY is an address, a user or a path; for rules that count by several fields, one value for each, in their order. If rules
and counters count by several kinds of keys, each is shown for which the key has a count, a limit in use or a ban; --json has all of
them. Nothing is counted. The token needs the role read.

` + answerCodes,
		Example: "  lately key 203.0.113.9\n  lately key 203.0.113.9 ada",
		Args: func(_ *cobra.Command, key []string) error {
			if len(key) == 0 {
				return errNoKey
			}
			return nil
		},
	}
	asks(cmd, access.Read, readKey, keyLines)
	return cmd
}

// readKey asks for key under each list of fields that has as many fields as key has
// values.
func readKey(ctx context.Context, c *client.Client, key []string) (a keyAnswer, err error) {
	set, err := c.Rules(ctx)
	if err != nil {
		return a, err
	}
	var all [][]string
	add := func(fields []string) {
		if len(fields) == len(key) && !slices.ContainsFunc(all, func(other []string) bool { return slices.Equal(other, fields) }) {
			all = append(all, fields)
		}
	}
	for i := range set.Rules {
		if bans(&set.Rules[i]) {
			add(set.Rules[i].Fields)
		}
	}
	for i := range set.Counters {
		add(set.Counters[i].Fields)
	}
	if len(all) == 0 {
		return a, fmt.Errorf("KEY: %d values: no rule and no counter counts by as many fields", len(key))
	}
	for _, fields := range all {
		report, err := c.Key(ctx, fields, key)
		if err != nil {
			return a, err
		}
		a.Keys = append(a.Keys, report)
		if proxied := proxied(fields, key); proxied != nil {
			if report, err = c.Key(ctx, fields, proxied); err != nil {
				return a, err
			}
			if known(&report) {
				a.Keys = append(a.Keys, report)
			}
		}
	}
	return a, nil
}

// proxyPrefix begins the client of a request whose trusted proxy did not name one; the proxy's address follows.
const proxyPrefix = "proxy:"

// proxied returns the key of requests that a trusted proxy with the address in key sent without naming the
// client, or nil if key has no such address.
func proxied(fields, key []string) []string {
	i := slices.Index(fields, "client")
	if i < 0 {
		return nil
	}
	addr, ok := address.Parse(key[i])
	if !ok {
		return nil
	}
	key = slices.Clone(key)
	key[i] = proxyPrefix + addr.String()
	return key
}

func keyLines(w io.Writer, a keyAnswer) {
	var unknown []string
	for i := range a.Keys {
		r := &a.Keys[i]
		if len(a.Keys) > 1 && !known(r) {
			unknown = append(unknown, strings.Join(r.Fields, ", "))
			continue
		}
		if i > len(unknown) {
			fmt.Fprintln(w)
		}
		keyReport(w, r)
	}
	if len(unknown) == len(a.Keys) {
		fmt.Fprintf(w, "%s: no count, no limit in use and no ban as %s\n", shown(unknownKey(a.Keys)...), visible(strings.Join(unknown, "; ")))
	}
}

// unknownKey returns the values of a key of which nothing is known, for one line about all its fields: as they were given if none
// of the fields is hashed, or if they are addresses, which are no secrets. Otherwise they may be secrets, and it returns digests.
func unknownKey(all []api.KeyReport) []string {
	hashed, plain := -1, -1
	for i := range all {
		if slices.ContainsFunc(all[i].Values(), intake.IsDigest) {
			hashed = i
		} else if plain < 0 {
			plain = i
		}
	}
	isAddr := func(v string) bool { _, ok := address.Parse(v); return ok }
	if hashed < 0 || plain >= 0 && !slices.ContainsFunc(all[plain].Values(), func(v string) bool { return !isAddr(v) }) {
		return all[plain].Values()
	}
	return all[hashed].Values()
}

// known reports whether r has a count, a limit in use or a ban.
func known(r *api.KeyReport) bool {
	return len(r.Bans) > 0 ||
		slices.ContainsFunc(r.Counters, func(w api.KeyWindow) bool { return w.Hi > 0 }) ||
		slices.ContainsFunc(r.Rules, func(d api.KeyDecision) bool { return !d.Decision.Allowed || d.Decision.Remaining+1 < d.Decision.Limit })
}

func keyReport(w io.Writer, r *api.KeyReport) {
	fmt.Fprintf(w, "%s %s\n", visible(strings.Join(r.Fields, ", ")), shown(r.Values()...))
	explainProxy(w, r.Values())
	for i := range r.Counters {
		k := &r.Counters[i]
		fmt.Fprintf(w, "  counter\t%s\tlast %s\t%s\n", visible(k.Counter), rulevalue.FormatDuration(k.Span.Duration()), bounded(k.Lo, k.Hi))
	}
	for i := range r.Rules {
		fmt.Fprintf(w, "  rule\t%s\t%s\n", visible(r.Rules[i].Rule), nextDecision(&r.Rules[i].Decision))
	}
	for i := range r.Bans {
		b := &r.Bans[i]
		fmt.Fprintf(w, "  ban\t%s\t%s\n", visible(b.Rule), banText(b))
	}
}

// explainProxy explains a key with a client such as proxy:127.0.0.1.
func explainProxy(w io.Writer, key []string) {
	for _, v := range key {
		if addr, ok := strings.CutPrefix(v, proxyPrefix); ok {
			fmt.Fprintf(w, "  the trusted proxy %s did not name the client of these requests: it must send X-Forwarded-For, unless they came from its own machine\n", visible(addr))
		}
	}
}

func banText(b *api.Ban) string {
	return fmt.Sprintf("since %s, until %s UTC, by %s%s", stamp(b.Since), stamp(b.Until), visible(b.Source), reasonText(visible(b.Reason)))
}

// noLimit is why a rule allows an event without a limit: the last holds while the store of limits is away.
const noLimit = "it is in shadow mode, the key is on the allow list, or on_store_failure is open"

// storeAway is why a rule refuses an event, and does not tell when one is allowed.
const storeAway = "the store of limits is away, and on_store_failure is closed"

// nextDecision describes the decision of a rule about the next event of a key.
func nextDecision(d *api.Decision) string {
	switch {
	case d.BannedUntil > 0:
		return "banned until " + stamp(time.UnixMilli(int64(d.BannedUntil))) + " UTC"
	case d.Allowed && d.Limit == 0:
		return "allows the next event: " + noLimit
	case d.Allowed:
		return fmt.Sprintf("allows the next event, which leaves %d of %d", d.Remaining, d.Limit)
	case d.RetryAfter < 0:
		return "refuses the next event, and no waiting helps"
	case d.RetryAfter == 0:
		return "refuses the next event: " + storeAway
	}
	return fmt.Sprintf("refuses the next event, again allowed in %s", lasting(d.RetryAfter.Duration()))
}
