package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
)

// banFlags is the flags of the ban command as they are given.
type banFlags struct {
	rule, length, reason, from string
	duration                   time.Duration // of length
}

// check validates the flags beside the key.
func (f *banFlags) check(key []string) (err error) {
	switch {
	case f.from != "" && (len(key) > 0 || f.rule != "" || f.length != "" || f.reason != ""):
		return errors.New("--from: must not be given with KEY, --rule, --for or --reason: the file has them")
	case f.from != "":
		return nil
	case f.rule == "":
		return errNoRule
	case f.length == "":
		return errors.New("--for: missing: must be a duration such as 10m, 1h or 7d")
	}
	if f.duration, err = rulevalue.ParseDuration(f.length); err != nil {
		return fmt.Errorf("--for: %q: must be a duration such as 10m, 1h or 7d", f.length)
	}
	if len(key) == 0 {
		return errNoKey
	}
	return nil
}

func newBan() *cobra.Command {
	var given banFlags
	cmd := &cobra.Command{
		Use:   "ban [flags] --rule RULE --for D KEY... | --from FILE",
		Short: "Ban a key on a running server",
		Long: `Ban bans a key under a limit or a ban of a running server, and prints the ban. It returns when the ban is on
the server's disk, if the server has a data directory. A ban of the same key and rule is replaced. The token needs the role admin.

KEY is the key of the rule: an address, a user; for a rule that counts by several fields, one value for each,
in their order.

With --from, ban adds the bans that lately bans --json has printed, until the same time and with the same reason, and
prints how many. Bans that have ended are left out. The next ban of such a key is as long as its first.

` + answerCodes,
		Example: `  lately ban --rule per-client --for 1h 203.0.113.9
  lately ban --rule login --for 7d --reason "stolen account" 203.0.113.9 ada
  lately ban --from bans.json`,
		Args: func(_ *cobra.Command, key []string) error { return given.check(key) },
	}
	f := asks(cmd, access.Admin, func(ctx context.Context, c *client.Client, key []string) (api.Ban, error) {
		return c.Ban(ctx, given.rule, given.duration, given.reason, key...)
	}, func(w io.Writer, b api.Ban) {
		fmt.Fprintf(w, "%s is banned under %s until %s UTC\n", shown(b.Values()...), visible(b.Rule), stamp(b.Until))
	})
	f.registerRule(cmd, &given.rule, "`RULE` under which the key is banned (required)")
	cmd.Flags().StringVar(&given.length, "for", "", "how long, as a duration `D` such as 10m, 24h or 7d (required)")
	cmd.Flags().StringVar(&given.reason, "reason", "", "`TEXT` that lists of bans show")
	cmd.Flags().StringVar(&given.from, "from", "", "add the bans in `FILE`, the output of lately bans --json; - is the standard input")
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if given.from == "" {
			return one(cmd, args)
		}
		return addBans(cmd, f, given.from)
	}
	return cmd
}

// An addedBans is what lately ban --from prints.
type addedBans struct {
	Added    int `json:"added"`
	Ended    int `json:"ended"`
	Rejected int `json:"rejected"`
}

// addBans adds the bans of a file to the server that f describes. The error names those that the server rejects.
func addBans(cmd *cobra.Command, f *answerFlags, path string) error {
	list, err := readBanFile(cmd, path)
	if err != nil {
		return inputErrorOf(fmt.Sprintf("--from: %v", err))
	}
	var rejected []string
	err = answer(cmd, f, func(ctx context.Context, c *client.Client) (n addedBans, err error) {
		for i := range list {
			b := &list[i]
			left := time.Until(b.Until)
			if left <= 0 {
				n.Ended++
				continue
			}
			_, err := c.Ban(ctx, b.Rule, left, b.Reason, b.Values()...)
			switch answer, ok := errors.AsType[*client.Error](err); {
			case err == nil:
				n.Added++
			case ok && !answer.Temporary():
				n.Rejected++
				rejected = append(rejected, fmt.Sprintf("%s under %s: %v", shown(b.Values()...), visible(b.Rule), answer))
			default:
				return n, err
			}
		}
		return n, nil
	}, func(w io.Writer, n addedBans) {
		fmt.Fprintf(w, "bans added: %d, ended: %d, rejected: %d\n", n.Added, n.Ended, n.Rejected)
	})
	return cmp.Or(err, inputErrorOf(rejected...))
}

// readBanFile reads what lately bans --json has printed.
func readBanFile(cmd *cobra.Command, path string) ([]api.Ban, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	var page api.BanPage
	if err := json.NewDecoder(in).Decode(&page); err != nil {
		return nil, fmt.Errorf("%s: %w: must be the output of lately bans --json", path, err)
	}
	switch {
	case page.Bans == nil:
		return nil, fmt.Errorf("%s: no list of bans: must be the output of lately bans --json", path)
	case len(page.Bans) < page.Total:
		return nil, fmt.Errorf("%s: %d of %d bans: must have all, which lately bans --limit 0 --json prints", path, len(page.Bans), page.Total)
	}
	return page.Bans, nil
}

// errNoKey is the error of a command line without a key.
var errNoKey = errors.New("KEY: missing: must be the key of a rule, such as 203.0.113.9")

func newUnban() *cobra.Command {
	var filter api.BanFilter
	many := func() bool { return filter.Pattern != "" || filter.Network != "" }
	cmd := &cobra.Command{
		Use:   "unban [flags] KEY... | --pattern GLOB | --network NETWORK",
		Short: "End bans on a running server",
		Long: `Unban ends the ban of a key under --rule, or under every rule that counts by as many fields as KEY has values.
With --pattern or --network it ends all bans that match; given together, with or without --rule, all of them must match.
It prints the number of bans ended; 0 is not an error. It returns when the change is on the server's disk, if the server has a
data directory. The token needs the role admin.

` + answerCodes,
		Example: `  lately unban 203.0.113.9
  lately unban --rule login 203.0.113.9 ada
  lately unban --network 192.0.2.0/24`,
		Args: func(_ *cobra.Command, key []string) error {
			switch {
			case many() && len(key) > 0:
				return fmt.Errorf("KEY: %q: must not be given with --pattern or --network", key[0])
			case !many() && len(key) == 0:
				return errors.New("KEY: missing: must be a key such as 203.0.113.9, or --pattern or --network must be given")
			}
			return nil
		},
	}
	f := asks(cmd, access.Admin, func(ctx context.Context, c *client.Client, key []string) (api.Unbanned, error) {
		if many() {
			n, err := c.UnbanAll(ctx, filter)
			return api.Unbanned{Unbanned: n}, err
		}
		return unbanKey(ctx, c, filter.Rule, key)
	}, func(w io.Writer, u api.Unbanned) {
		fmt.Fprintf(w, "bans ended: %d\n", u.Unbanned)
	})
	f.registerRule(cmd, &filter.Rule, "end bans under `RULE` only")
	cmd.Flags().StringVar(&filter.Pattern, "pattern", "", "end the bans of keys that `GLOB` matches: a value, or all values joined by tabs")
	cmd.Flags().StringVar(&filter.Network, "network", "", "end the bans of keys with an address in `NETWORK`, such as 192.0.2.0/24")
	return cmd
}

// unbanKey ends the ban of key under the rule of that name, or under every rule that it can be a key of
// if name is "".
func unbanKey(ctx context.Context, c *client.Client, name string, key []string) (u api.Unbanned, err error) {
	set, err := c.Rules(ctx)
	if err != nil {
		return u, err
	}
	set.Rules = slices.DeleteFunc(set.Rules, func(r api.Rule) bool {
		return !bans(&r) || name == "" && len(r.Fields) != len(key) || name != "" && r.Name != name
	})
	switch {
	case len(set.Rules) == 0 && name == "":
		return u, fmt.Errorf("KEY: %d values: no rule counts by as many fields", len(key))
	case len(set.Rules) == 0:
		_, err := c.Unban(ctx, name, key...) // which has an error
		return u, err
	}
	for _, r := range set.Rules {
		n, err := c.Unban(ctx, r.Name, key...)
		if err != nil {
			return u, err
		}
		u.Unbanned += n
	}
	return u, nil
}

// bans reports whether keys can be banned under r.
func bans(r *api.Rule) bool { return r.Kind != "hot" }

func newBans() *cobra.Command {
	var q client.BanQuery
	cmd := &cobra.Command{
		Use:   "bans [flags]",
		Short: "List the bans of a running server",
		Long: `Bans lists the bans that a running server enforces, the newest first. The token needs the role read.

` + answerCodes,
		Example: `  lately bans
  lately bans --rule login --match 203.0.113. --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if q.Limit < 0 {
				return fmt.Errorf("--limit: %d: must be 1 or more, or 0 for all", q.Limit)
			}
			return flagsOnly(cmd, args)
		},
	}
	f := asks(cmd, access.Read, func(ctx context.Context, c *client.Client, _ []string) (api.BanPage, error) {
		return readBans(ctx, c, q)
	}, banTable)
	f.registerRule(cmd, &q.Rule, "list bans under `RULE` only")
	cmd.Flags().StringVar(&q.Text, "match", "", "list bans with `TEXT` in the key or the reason only")
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "list at most `N` bans; 0 lists all")
	return cmd
}

// readBans reads as many pages as q.Limit needs; 0 means all.
func readBans(ctx context.Context, c *client.Client, q client.BanQuery) (all api.BanPage, err error) {
	const maxPage = 1000
	most := q.Limit
	all.Bans = []api.Ban{}
	for {
		q.Limit = maxPage
		if most > 0 {
			q.Limit = min(most-len(all.Bans), maxPage)
		}
		page, err := c.Bans(ctx, q)
		if err != nil {
			return all, err
		}
		all.Bans, all.Total, q.Cursor = append(all.Bans, page.Bans...), page.Total, page.Next
		if q.Cursor == "" || most > 0 && len(all.Bans) >= most {
			return all, nil
		}
	}
}

func banTable(w io.Writer, page api.BanPage) {
	if len(page.Bans) == 0 {
		fmt.Fprintln(w, "no bans")
		return
	}
	fmt.Fprintln(w, "RULE\tKEY\tSINCE (UTC)\tUNTIL (UTC)\tBANS\tBY\tREASON")
	for i := range page.Bans {
		b := &page.Bans[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", visible(b.Rule), shown(b.Values()...), stamp(b.Since), stamp(b.Until), b.Count, visible(b.Source), visible(b.Reason))
	}
	if page.Total > len(page.Bans) {
		fmt.Fprintf(w, "%d of %d bans; --limit 0 lists all\n", len(page.Bans), page.Total)
	}
}
