package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/access"
)

func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules [flags]",
		Short: "List the rules of a running server, with their decisions",
		Long: `Rules lists the rules that a running server enforces, what each decided since the server started, and each
rule as a sentence. If the last reload failed, it says why. With --json the text of the rules file is included. The token needs the role read.

` + answerCodes,
		Example: "  lately rules\n  lately rules --json",
		Args:    flagsOnly,
	}
	asks(cmd, access.Read, func(ctx context.Context, c *client.Client, _ []string) (api.RuleSet, error) { return c.Rules(ctx) }, ruleTable)
	return cmd
}

func ruleTable(w io.Writer, set api.RuleSet) {
	fmt.Fprintf(w, "%s, in force since %s UTC\n", cmp.Or(visible(set.File), "no rules file"), stamp(set.Since))
	reloadError(w, set.Error)
	if len(set.Rules) > 0 {
		fmt.Fprintln(w, "\nRULE\tKIND\tALLOWED\tREFUSED\tBANNED\tSHADOW\tKEYS\tBANS")
	}
	for i := range set.Rules {
		r := &set.Rules[i]
		fmt.Fprintf(w, "%s\t%s", visible(r.Name), r.Kind)
		if s := r.Stats; s != nil {
			fmt.Fprintf(w, "\t%d\t%d\t%d\t%d\t%d\t%d", s.Allowed, s.Refused, s.Banned, s.Shadow, s.Keys, s.Bans)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for i := range set.Rules {
		fmt.Fprintln(w, visible(set.Rules[i].Sentence))
	}
	for i := range set.Rules {
		if s := set.Rules[i].Stats; s != nil && s.LackingSentence != "" {
			fmt.Fprintf(w, "rule %s: %s\n", visible(set.Rules[i].Name), visible(s.LackingSentence))
		}
	}
	for i := range set.Counters {
		fmt.Fprintln(w, visible(set.Counters[i].Sentence))
	}
	for _, network := range set.Allow.Clients {
		fmt.Fprintf(w, "allow list: %v\n", network)
	}
	for _, f := range set.Allow.Files {
		fmt.Fprintf(w, "allow list: %s, prefixes: %d\n", visible(f.Name), f.Prefixes)
	}
}

// reloadError writes why the last reload failed, unless text is "".
func reloadError(w io.Writer, text string) {
	if text != "" {
		fmt.Fprintf(w, "the last reload failed, and these rules were kept: %s\n", visible(text))
	}
}

func newReload() *cobra.Command {
	var dropBans bool
	cmd := &cobra.Command{
		Use:   "reload [flags]",
		Short: "Make a running server read its rules file again",
		Long: `Reload makes a running server read its rules file again, and prints the added, removed and changed rules.
If the file has mistakes, or a rule with bans would be removed or get another key, the rules in force are kept (exit code 1). The token
needs the role admin.

` + answerCodes,
		Example: "  lately validate rules.yaml && lately reload",
		Args:    flagsOnly,
	}
	asks(cmd, access.Admin, func(ctx context.Context, c *client.Client, _ []string) (api.RuleChanges, error) {
		return c.Reload(ctx, dropBans)
	}, changeLines)
	cmd.Flags().BoolVar(&dropBans, "drop-bans", false, "drop the bans under rules that are removed or get another key")
	return cmd
}

func changeLines(w io.Writer, changes api.RuleChanges) {
	none := true
	for _, c := range []struct {
		what  string
		names []string
	}{{"added", changes.Added}, {"removed", changes.Removed}, {"changed", changes.Changed}} {
		if len(c.names) > 0 {
			fmt.Fprintf(w, "%s:\t%s\n", c.what, visible(strings.Join(c.names, ", ")))
			none = false
		}
	}
	if changes.BansDropped > 0 {
		fmt.Fprintf(w, "bans dropped:\t%d\n", changes.BansDropped)
	}
	if none {
		fmt.Fprintln(w, "nothing has changed")
	}
}
