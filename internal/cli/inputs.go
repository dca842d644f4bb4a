package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/replay"
)

// logCodes is the part of the help with the exit codes of commands that read logs.
const logCodes = `Exit codes: 0 success; 1 a file could not be read, or not to its end, or no event has a field that is needed (the
rest is reported, if anything is left), or is in the cut, or the output could not be written; 2 the command line or a rules file
is wrong, and nothing was done; 130 interrupted.`

// inputFlags is the flags of all commands that read logs: which lines are events, and
// when they happened.
type inputFlags struct {
	since, until string
	proxies      []string
	geo          geoFlag
	tz           string
	zone         *time.Location // of tz, once it is parsed
}

// register adds the flags to cmd. They fill in c.
func (f *inputFlags) register(cmd *cobra.Command, c *replay.Config) {
	flags := cmd.Flags()
	flags.StringVar(&c.Format, "format", "auto", "`NAME` or SPEC of the log format, or auto")
	flags.StringSliceVar(&f.proxies, "trusted-proxy", nil, "the client of an event from `NETWORK` is the one in its X-Forwarded-For, if the log has it (repeatable, or a list)")
	f.geo.register(flags)
	flags.IntVar(&c.Year, "year", 0, "year of a syslog file's first line (default: the file's modification time is the last line's)")
	flags.DurationVar(&c.Resolution, "resolution", 0, "round event times down to `D` (default: the precision of the log)")
	flags.StringVar(&f.since, "since", "", "leave out events before `TIME`, such as \"2024-01-29 10:05\", or -2h: two hours before the log's end")
	flags.StringVar(&f.until, "until", "", "leave out events at `TIME` and later")
	flags.StringArrayVar(&c.Cut.Where, "where", nil, "keep only the events that match `FIELD=PATTERN`, such as status=5xx, path!=/api/** or \"path=/a || status=404\" (repeatable)")
	flags.StringVar(&f.tz, "tz", "UTC", "`ZONE` of --since, --until and of the report, such as Europe/Vienna or Local")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(append(accesslog.Formats(), "auto"), cobra.ShellCompDirectiveNoFileComp))
}

// parse completes c with the files of the command line.
func (f *inputFlags) parse(cmd *cobra.Command, files []string, c *replay.Config) error {
	c.Files, c.Stdin, c.Progress = files, cmd.InOrStdin(), &replay.Progress{Files: len(files)}
	for _, name := range []string{"year", "top", "resolution", "lateness"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed && (flag.Value.String() == "0" || flag.Value.String() == "0s") {
			return fmt.Errorf("--%s: 0: must be more than that", name)
		}
	}
	for _, text := range f.proxies {
		network, err := address.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--trusted-proxy: %w", err)
		}
		c.TrustedProxies = append(c.TrustedProxies, network)
	}
	db, err := geo.Open(f.geo...)
	if err != nil {
		return err
	}
	if db != nil {
		c.Locate = db.Set
	}
	return f.parseCut(cmd.Flags(), &c.Cut)
}

// geoFlag is the files of --geo.
type geoFlag []string

func (f *geoFlag) register(flags *pflag.FlagSet) {
	flags.StringArrayVar((*[]string)(f), "geo", nil, "mmdb `FILE` of countries or autonomous systems, for the fields country and asn (repeatable)")
}

// parseCut fills in the cut, and the zone.
func (f *inputFlags) parseCut(flags *pflag.FlagSet, cut *replay.Cut) (err error) {
	if f.zone, err = time.LoadLocation(f.tz); err != nil || f.tz == "" {
		return fmt.Errorf("--tz: %q: must be the name of a time zone, such as Europe/Vienna, or UTC or Local", f.tz)
	}
	if flags.Changed("since") {
		if cut.Since, err = replay.ParseBound(f.since, f.zone); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
	}
	if flags.Changed("until") {
		if cut.Until, err = replay.ParseBound(f.until, f.zone); err != nil {
			return fmt.Errorf("--until: %w", err)
		}
	}
	return nil
}

// interruptTimeout is how long an interrupted command may take to end.
const interruptTimeout = time.Second

// reading runs f with c and a progress bar. A read from a terminal or a silent pipe cannot be
// interrupted, so after an interrupt it does not wait for that.
func reading[C, T any](cmd *cobra.Command, p *replay.Progress, c C, f func(context.Context, C) (T, error)) (T, error) {
	defer showProgress(cmd.ErrOrStderr(), p)()
	var value T
	var err error
	ctx, ended := cmd.Context(), make(chan struct{})
	go func() {
		value, err = f(ctx, c)
		close(ended)
	}()
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(interruptTimeout, func() { close(late) }) })
	defer stop()
	select {
	case <-ended:
		return value, err
	case <-late:
		var none T
		return none, ctx.Err()
	}
}

// print prints a report, as JSON or as text, and returns its problems, with one more if that
// fails.
func (f *inputFlags) print(cmd *cobra.Command, asJSON bool, report any, text func(io.Writer, replay.TextStyle) error, problems []string) []string {
	var err error
	if out := cmd.OutOrStdout(); asJSON {
		err = writeJSON(out, report)
	} else {
		err = text(out, replay.TextStyle{Color: isTerminal(out) && os.Getenv("NO_COLOR") == "", Zone: f.zone, Width: widthOf(out)})
	}
	if err != nil {
		problems = append(problems, fmt.Sprintf("the report cannot be written: %v", err))
	}
	return problems
}

// inputProblem returns err as an inputError if it is about the files that were read.
func inputProblem(err error) error {
	if nothing, ok := errors.AsType[*replay.InputError](err); ok {
		return inputErrorOf(nothing.Sentences...)
	}
	if errors.Is(err, replay.ErrTooManyEvents) {
		return inputErrorOf(err.Error())
	}
	return err
}
