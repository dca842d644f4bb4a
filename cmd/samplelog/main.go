// Samplelog writes a generated access log to standard output, and its planted
// events to standard error:
//
//	samplelog [-lines N] [-seed S] [-duration D] > access.log
//
// The log is that of package accesslogtest: same flags, same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "samplelog:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	var c accesslogtest.Config
	flags := flag.NewFlagSet("samplelog", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.Lines, "lines", 0, "number of lines (default 100000)")
	flags.Uint64Var(&c.Seed, "seed", 0, "which log: the same seed gives the same bytes")
	flags.DurationVar(&c.Duration, "duration", 0, "time from the first to the last line (default 24h)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; the log goes to standard output", flags.Arg(0))
	}
	truth, err := accesslogtest.Write(stdout, c)
	if err != nil {
		return err
	}
	describe(stderr, truth)
	return nil
}

// describe prints one line for each thing that a report should find.
func describe(w io.Writer, t accesslogtest.Truth) {
	fmt.Fprintf(w, "%d lines, %d of them no event, %d clients\n", t.Lines, t.Bad, t.Clients)
	show := func(what string, b accesslogtest.Burst) {
		if b.Lines == 0 {
			return
		}
		from := fmt.Sprintf("%d clients", len(b.Clients))
		switch len(b.Clients) {
		case 0:
			from = "many clients"
		case 1:
			from = b.Clients[0]
		}
		fmt.Fprintf(w, "%-12s %6d lines from %s to %s by %s %s\n",
			what, b.Lines, b.Begin.Format(time.DateTime), b.End.Format(time.DateTime), from, b.Path)
	}
	show("crawler:", t.Crawler)
	show("crowd:", t.Crowd)
	show("flood:", t.Flood)
	show("hot product:", t.HotProduct)
}
