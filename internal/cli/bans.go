package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

func newBans() *cobra.Command {
	var q client.BanQuery
	cmd := &cobra.Command{
		Use:   "bans [flags]",
		Short: "List the bans of a running server",
		Long: `Bans lists the bans that a running server enforces, those that began last first. The token needs the role read.

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
	f := asks(cmd, func(ctx context.Context, c *client.Client, _ []string) (api.BanPage, error) {
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
