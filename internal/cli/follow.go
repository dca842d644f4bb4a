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
	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// followCommand is the flags of follow.
type followCommand struct {
	settings settingFlags
	connect  connectFlags
	name     string
	dryRun   bool
	json     bool
}

// Server settings that follow accepts, and those that cannot be combined with
// --dry-run.
var (
	followSettings  = []string{"rules", "tz", "lateness", "silence", "trusted-proxy", "geo", "memory", "rules-poll", "log-format", "log-level"}
	followEnforcing = []string{"data", "snapshot-every", "nftables", "deny-file", "deny-format", "deny-command", "deny-every", "webhook", "webhook-secret-file"}
)

func newFollow() *cobra.Command {
	var c followCommand
	cmd := &cobra.Command{
		Use:   "follow [flags] { --rules FILE | --addr ADDRESS } LOG[=FORMAT]...",
		Short: "Judge the events of live logs: ban from them, print what would be banned, or send them to a server",
		Long: `Follow reads logs while they are written, through rotations of every kind, and judges their events at
the times of the log. It is lately serve --follow without listeners: bans are in its log, and with --nftables, --deny-file
or --webhook they are enforced. A LOG is a file, a directory, or a pattern such as "/var/log/nginx/*.log"; the format is found from the first
lines, or named as for lately replay. It can be - for the standard input, whose end ends the command if there is no other LOG; a FIFO; or the
journal of systemd, as journal, journal:ssh.service or journal:nginx=clf. Times without a zone, as in syslog, are in the zone of the machine, or in --tz.

It begins with the first line of each file. With --data, it continues at its last position, also after a kill, and
counts each line once.

With --dry-run nothing is banned outside of this process. It prints a line for each refusal by a limit and for each
ban, but not for events during a ban.

With --addr it sends the events to a running server, which judges them by its rules, like events of logs that it follows
itself. It needs no directory: the server stores the positions in the logs in the same snapshot as their counts, with
the events that wait for --lateness. While the server is unreachable, nothing is read. Each process needs a unique --name; a second process with the same name ends the first. The
token needs the role check. At the end it prints the numbers of events sent, with --json as JSON.

SIGHUP reads the rules again; with --addr there is nothing to reload. Interrupt and SIGTERM end the command. Exit codes: 0 it was ended; 1 something
could not be read or written, or the server refuses the events; 2 the command line or the rules file is wrong.`,
		Example: `  lately follow --rules rules.yaml --dry-run /var/log/nginx/access.log
  lately follow --rules rules.yaml --data /var/lib/lately --nftables /var/log/nginx/access.log
  lately follow --rules rules.yaml --dry-run --json app.log=json:time=ts@s,client=ip
  lately follow --rules rules.yaml --data /var/lib/lately --nftables journal:ssh.service
  lately follow --addr https://lately.example.org --token-file token /var/log/nginx/access.log`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&c.dryRun, "dry-run", false, "print refusals and bans, and enforce nothing")
	flags.BoolVar(&c.json, "json", false, "with --dry-run: print JSON, one object per line; with --addr: print the numbers of events as JSON")
	flags.StringVar(&c.name, "name", "", "with --addr: the `NAME` under which it keeps how far the logs were read (default: the name of the machine)")
	c.connect.registerAddr(cmd, access.Check, "", "send the events to the server whose HTTP listener has this `ADDRESS`, instead of judging them")
	c.settings = registerSettings(flags, func(name string) bool {
		return slices.Contains(followSettings, name) || slices.Contains(followEnforcing, name)
	})
	return cmd
}

func (c *followCommand) run(cmd *cobra.Command, logs []string) error {
	config := server.Config{RESP: server.Off, HTTP: server.Off, ShutdownDelay: -1}
	if err := c.settings.set(&config); err != nil {
		return err
	}
	if err := c.connect.checkAddr(cmd, "the server judges the events, by its own settings", "name", "json", "tz", "lateness", "silence", "log-format", "log-level"); err != nil {
		return err
	}
	if err := c.check(cmd, logs, &config); err != nil {
		return err
	}
	for _, s := range config.Settings() {
		if s.Name == "follow" {
			if err := s.Set(logs...); err != nil {
				return err
			}
		}
	}
	switch {
	case c.connect.addr != "":
		return c.toServer(cmd, &config)
	case !c.dryRun:
		return runServer(cmd, config, func(*server.Server) {})
	}
	return c.printDecisions(cmd, config)
}

// check returns an error for flags that do not belong together, or lack one.
func (c *followCommand) check(cmd *cobra.Command, logs []string, config *server.Config) error {
	switch {
	case len(logs) == 0:
		return fmt.Errorf("follow: no LOG: must be at least one")
	case c.connect.addr == "" && len(config.RulesFiles) == 0:
		return fmt.Errorf("--rules: missing: must be a rules file, or --addr")
	case c.dryRun && slices.ContainsFunc(followEnforcing, cmd.Flags().Changed):
		return fmt.Errorf("--dry-run: must be without --%s: it enforces nothing and keeps nothing", strings.Join(followEnforcing, ", --"))
	case c.connect.addr == "" && c.json && !c.dryRun:
		return fmt.Errorf("--json: must be with --dry-run or --addr")
	case c.connect.addr == "" && c.name != "":
		return fmt.Errorf("--name: must be with --addr")
	}
	return nil
}

// printDecisions judges the events of the logs, and prints the decisions that refuse.
func (c *followCommand) printDecisions(cmd *cobra.Command, config server.Config) error {
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	cmd.SetContext(ctx)
	p := decisionPrinter{out: cmd.OutOrStdout(), json: c.json}
	go readerGone(ctx, p.out, func(err error) { stop(notWritten(err)) })
	config.Decided = func(ev *match.Event, d ratelimit.Decision) {
		if err := p.print(ev, d); err != nil {
			stop(notWritten(err))
		}
	}
	err := runServer(cmd, config, func(s *server.Server) {
		p.rules = s.Engine().Rules
		noteShadows(cmd.ErrOrStderr(), p.rules().Limits)
	})
	if cause := context.Cause(ctx); err == nil && cause != nil && cmd.Context().Err() != nil && cause != context.Canceled {
		return cause
	}
	return err
}

// noteShadows warns of rules in shadow mode, whose decisions are not printed.
func noteShadows(w io.Writer, set *ratelimit.Set) {
	var names []string
	for _, r := range set.Rules() {
		if r.Shadow {
			names = append(names, visible(r.Name))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "lately: --dry-run prints nothing of rules in shadow mode: %s; remove mode: shadow to see what they would do\n", strings.Join(names, ", "))
	}
}

// A decisionPrinter prints decisions that refuse.
type decisionPrinter struct {
	out   io.Writer
	json  bool
	rules func() *rules.File
	key   []byte
}

// A printedDecision is a decision as JSON.
type printedDecision struct {
	Time    time.Time `json:"time"`
	Outcome string    `json:"outcome"` // refused, or banned: the event began a ban
	Rule    string    `json:"rule"`
	api.Key
	Until time.Time `json:"until,omitzero"` // of a ban
}

// print prints a refusal by a limit, or the beginning of a ban.
func (p *decisionPrinter) print(ev *match.Event, d ratelimit.Decision) error {
	if d.Allowed || !d.BannedUntil.IsZero() && !d.Started {
		return nil
	}
	var values []string
	if rule, err := p.rules().Limits.Named(d.Rule); err == nil { // else a reload has removed it
		p.key, _ = rule.Key.Append(p.key[:0], ev)
		for part := range rule.Key.Parts(p.key) {
			values = append(values, string(part))
		}
	}
	line := printedDecision{Time: ev.Time.UTC(), Outcome: "refused", Rule: d.Rule, Key: api.KeyOf(values...)}
	if d.Started {
		line.Outcome, line.Until = "banned", d.BannedUntil.UTC()
	}
	if p.json {
		return writeJSON(p.out, line)
	}
	text := fmt.Sprintf("%s %-7s %s %s", line.Time.Format(time.RFC3339), line.Outcome, visible(line.Rule), visible(strings.Join(values, " ")))
	if d.Started {
		text += " until " + line.Until.Format(time.RFC3339)
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
