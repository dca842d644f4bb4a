package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

func newStatus() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the state of a running server",
		Long: `Status shows the state of a running server: its version, decisions, bans, memory, rules file and data directory, and the
role of the token. The token needs the role read.

` + answerCodes,
		Example: "  lately status\n  lately status --addr https://lately.example.org --token-file token --json",
		Args:    flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return answer(cmd, &f, func(ctx context.Context, c *client.Client) (api.Status, error) { return c.Status(ctx) }, statusLines)
		},
	}
	f.register(cmd)
	return cmd
}

func statusLines(w io.Writer, s api.Status) {
	t, m := &s.Totals, &s.Memory
	fmt.Fprintf(w, "version:\t%s\n", visible(s.Version))
	fmt.Fprintf(w, "started:\t%s UTC, %s ago\n", stamp(s.Started), lasting(time.Duration(s.Uptime)*time.Second))
	fmt.Fprintf(w, "decisions:\tallowed %d, refused %d, banned %d, unmatched %d, errors %d\n", t.Allowed, t.Refused, t.Banned, t.Unmatched, t.Errors)
	fmt.Fprintf(w, "bans:\t%d in force, %d that ended are remembered\n", s.Bans.Held, s.Bans.Remembered)
	if s.Bans.Refused > 0 {
		fmt.Fprintf(w, "\t%d could not begin, because there was no memory for them\n", s.Bans.Refused)
	}
	budget := "no budget"
	if m.Budget > 0 {
		budget = "a budget of " + size(m.Budget)
	}
	fmt.Fprintf(w, "memory:\t%s for limits and bans of %s, %s for counters, heap %s\n", size(m.Bytes), budget, size(m.Counters), size(int64(m.Heap)))
	fmt.Fprintf(w, "rules:\t%s, in force since %s UTC, reloads %d\n", cmp.Or(visible(s.Rules.File), "no rules file"), stamp(s.Rules.Since), s.Rules.Reloads)
	if s.Rules.Error != "" {
		fmt.Fprint(w, "\t")
		reloadError(w, s.Rules.Error)
	}
	storageLines(w, &s.Storage)
	storeLines(w, s.Store)
	if s.EventTime {
		fmt.Fprintf(w, "time:\t%s UTC, by the times of events\n", stamp(time.UnixMilli(int64(s.Now))))
	}
	fmt.Fprintf(w, "subscribers:\t%d\n", s.Subscribers)
	fmt.Fprintf(w, "your role:\t%s\n", visible(s.Role))
}

// storeLines says how the store is that servers share, if there is one.
func storeLines(w io.Writer, s *api.StoreStatus) {
	if s == nil {
		return
	}
	state := "up"
	if !s.Up {
		state = "down"
	}
	fmt.Fprintf(w, "store:\t%s at %s since %s UTC, %v a round trip, calls that failed %d, servers %d\n", state, visible(s.Address), stamp(s.Since),
		time.Duration(s.Latency)*time.Microsecond, s.Failures, s.Nodes)
	if s.Error != "" {
		fmt.Fprintf(w, "\t%s\n", visible(s.Error))
	}
	if s.OtherRules > 0 {
		fmt.Fprintf(w, "\tservers that enforce other rules than this one: %d\n", s.OtherRules)
	}
}

// storageLines says what fails in the data directory.
func storageLines(w io.Writer, s *api.StorageStatus) {
	state := "no failures"
	if s.JournalFailures+s.SnapshotFailures+s.MissingBans > 0 {
		state = fmt.Sprintf("journal failures %d, snapshot failures %d, bans not on disk %d", s.JournalFailures, s.SnapshotFailures, s.MissingBans)
	}
	fmt.Fprintf(w, "storage:\t%s\n", state)
	if s.JournalError != "" {
		fmt.Fprintf(w, "\tthe ban journal cannot be written: %s\n", visible(s.JournalError))
	}
	if s.SnapshotError != "" {
		fmt.Fprintf(w, "\tthe last snapshot could not be written: %s\n", visible(s.SnapshotError))
	}
}
