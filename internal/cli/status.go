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
	"github.com/lately-go/lately/internal/server/access"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the state of a running server",
		Long: `Status shows the state of a running server: its version, decisions, bans, memory, rules file and data directory, the
store that servers share, what enforces bans, the logs that it follows, and the role of the token. The token needs the role read.

` + answerCodes,
		Example: "  lately status\n  lately status --addr https://lately.example.org --token-file token --json",
		Args:    flagsOnly,
	}
	asks(cmd, access.Read, func(ctx context.Context, c *client.Client, _ []string) (api.Status, error) { return c.Status(ctx) }, statusLines)
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
	enforcementLines(w, s.Enforcement)
	logLines(w, s.Logs)
	fmt.Fprintf(w, "subscribers:\t%d\n", s.Subscribers)
	fmt.Fprintf(w, "your role:\t%s\n", visible(s.Role))
}

// storeLines writes the state of the shared store, if there is one.
func storeLines(w io.Writer, s *api.StoreStatus) {
	if s == nil {
		return
	}
	state := "up"
	if !s.Up {
		state = "down"
	}
	fmt.Fprintf(w, "store:\t%s at %s since %s UTC, %v a round trip, calls that failed %d, servers %d, bans learned %v ago\n", state, visible(s.Address), stamp(s.Since),
		time.Duration(s.Latency)*time.Microsecond, s.Failures, s.Nodes, s.SyncAge.Duration())
	if s.Error != "" {
		fmt.Fprintf(w, "\t%s\n", visible(s.Error))
	}
	if s.Warning != "" {
		fmt.Fprintf(w, "\t%s\n", visible(s.Warning))
	}
	if s.OtherRules > 0 {
		fmt.Fprintf(w, "\tservers that enforce other rules than this one: %d\n", s.OtherRules)
	}
}

// enforcementLines writes how far nftables and other targets enforce the bans, if there are any.
func enforcementLines(w io.Writer, s *api.Enforcement) {
	if s == nil {
		return
	}
	skipped := 0
	for _, n := range s.Skipped {
		skipped += n
	}
	fmt.Fprintf(w, "enforcement:\taddresses and networks %d, bans that are not enforced %d\n", s.Networks, skipped)
	for i := range s.Targets {
		t := &s.Targets[i]
		state := "has all changes"
		if t.Lag > 0 {
			state = lasting(t.Lag.Duration()) + " behind"
		}
		fmt.Fprintf(w, "\t%s: %s, attempts that failed %d, repairs %d\n", visible(t.Name), state, t.Failures, t.Repairs)
		if t.Error != "" {
			fmt.Fprintf(w, "\t  %s\n", visible(t.Error))
		}
	}
}

// logLines writes how far the followed logs were read.
func logLines(w io.Writer, logs []api.FollowedLog) {
	for i := range logs {
		l := &logs[i]
		fmt.Fprintf(w, "log:\t%s: %s behind, lines %d, bad %d, late events %d, gaps %d, last line %s UTC\n",
			visible(l.File), lasting(l.Lag.Duration()), l.Lines, l.Bad, l.Late, l.Gaps, stamp(l.LastLine))
		if l.Problem != "" {
			fmt.Fprintf(w, "\t  %s\n", visible(l.Problem))
		}
		if l.Silent {
			fmt.Fprint(w, "\t  no line for longer than --silence\n")
		}
	}
}

// storageLines writes the failures of the data directory.
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

// tooLate is how far a log or a target of enforcement may be behind before lately top says
// that something is wrong with it.
const tooLate = 10 * time.Second

// troubleOf returns what is wrong around a server whose clock is at now: with its store, with
// what enforces its bans, or with the logs that it follows; "" if nothing is.
func troubleOf(s *api.Status, now time.Time) string {
	if store := s.Store; store != nil && !store.Up {
		return "store down " + lasting(now.Sub(store.Since))
	} else if store != nil && store.OtherRules > 0 {
		return fmt.Sprintf("other rules on %d of %d servers", store.OtherRules, store.Nodes)
	}
	if s.Enforcement != nil {
		for i := range s.Enforcement.Targets {
			switch t := &s.Enforcement.Targets[i]; {
			case t.Error != "":
				return t.Name + " fails: " + t.Error
			case t.Lag.Duration() > tooLate:
				return t.Name + " is " + lasting(t.Lag.Duration()) + " behind"
			}
		}
	}
	for i := range s.Logs {
		switch l := &s.Logs[i]; {
		case l.Problem != "":
			return l.File + ": " + l.Problem
		case l.Lag.Duration() > tooLate:
			return fmt.Sprintf("%s is read %s late", l.File, lasting(l.Lag.Duration()))
		case l.Silent:
			return l.File + " is silent for " + lasting(now.Sub(l.LastLine))
		}
	}
	return ""
}

// lagOf returns how far the reading of the slowest log is behind.
func lagOf(logs []api.FollowedLog) (lag time.Duration) {
	for i := range logs {
		lag = max(lag, logs[i].Lag.Duration())
	}
	return lag
}
