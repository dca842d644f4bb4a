// Command run measures windows, keyed tables and limits beside their peers and
// writes what comes of it into a folder: the raw output of the benchmarks,
// benchstat's tables, a report in Markdown and charts. Start it from the
// module's folder:
//
//	go run ./run              # about eighteen minutes on two cores
//	go run ./run -quick       # a minute, to see that all of it works
//	go run ./run -report      # measure nothing, write reports and charts again
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A plan says how much is measured. Benchstat wants six samples of a figure to
// state its confidence.
type plan struct {
	windows struct {
		passes int
		time   time.Duration
	}
	lost  time.Duration
	keyed struct {
		passes, count int
		time          time.Duration
		keys          int
		series        string
	}
	limits struct {
		passes, events, keys, full int
		series                     string
	}
	cores int
}

func main() {
	log.SetFlags(log.Ltime)
	out := flag.String("out", "results", "folder for what is written")
	only := flag.String("only", "windows,keyed,limits", "what to measure and report: one or several of windows, keyed, limits")
	quick := flag.Bool("quick", false, "measure everything, but hardly: not for figures")
	report := flag.Bool("report", false, "measure nothing; write reports and charts from what is there")
	cores := flag.Int("cores", min(2, runtime.NumCPU()), "the larger number of cores; the smaller is 1")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &runner{ctx: ctx, out: *out, plan: fullPlan(*cores)}
	if *quick {
		r.plan = quickPlan(*cores)
	}
	if err := r.run(strings.Split(*only, ","), !*report); err != nil {
		log.Fatal("run: ", err)
	}
}

func fullPlan(cores int) (p plan) {
	p.windows.passes, p.windows.time, p.lost = 6, 80*time.Millisecond, 3*time.Second
	p.keyed.passes, p.keyed.count, p.keyed.time = 2, 3, 80*time.Millisecond
	p.keyed.keys, p.keyed.series = 1_000_000, "10000,100000,1000000,10000000"
	p.limits.passes, p.limits.events, p.limits.full = 3, 300_000, 50_000
	p.limits.keys, p.limits.series = 1_000_000, "10000,100000"
	p.cores = cores
	return p
}

func quickPlan(cores int) (p plan) {
	p.windows.passes, p.windows.time, p.lost = 1, 10*time.Millisecond, 100*time.Millisecond
	p.keyed.passes, p.keyed.count, p.keyed.time = 1, 1, 10*time.Millisecond
	p.keyed.keys, p.keyed.series = 100_000, "1000,10000"
	p.limits.passes, p.limits.events, p.limits.full = 1, 10_000, 1000
	p.limits.keys, p.limits.series = 100_000, "10000"
	p.cores = cores
	return p
}

// A runner writes files into its folder.
type runner struct {
	ctx  context.Context
	out  string
	plan plan
}

func (r *runner) run(subjects []string, measure bool) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, subject := range subjects {
		var batches []batch
		var write func(*report)
		switch subject {
		case "windows":
			batches, write = r.plan.windowBatches(), writeWindows
		case "keyed":
			batches, write = r.plan.keyedBatches(), writeKeyed
		case "limits":
			batches, write = r.plan.limitBatches(), writeLimits
		default:
			return fmt.Errorf("-only %q: must be one or several of windows, keyed, limits, with commas between", subject)
		}
		if measure {
			if err := r.measure(subject, batches); err != nil {
				return err
			}
		}
		if err := r.report(subject, write); err != nil {
			return err
		}
	}
	return r.command(os.Stderr, "go", "run", "./chart", "-results", r.out)
}

// report writes SUBJECT.benchstat.txt and SUBJECT.md from SUBJECT.txt.
func (r *runner) report(subject string, write func(*report)) error {
	raw := filepath.Join(r.out, subject+".txt")
	stat, err := os.Create(filepath.Join(r.out, subject+".benchstat.txt"))
	if err != nil {
		return err
	}
	defer stat.Close()
	if err := r.command(stat, "go", "tool", "benchstat", "-filter", ".unit:ns/op",
		"-table", ".name,/slots,/keys,/op", "-row", "/subject", "-col", "/goroutines,/gomaxprocs", raw); err != nil {
		return err
	}
	if err := stat.Close(); err != nil {
		return err
	}
	doc, err := newReport(raw)
	if err != nil {
		return err
	}
	write(doc)
	return os.WriteFile(filepath.Join(r.out, subject+".md"), []byte(doc.String()), 0o644)
}

func (r *runner) command(out *os.File, name string, args ...string) error {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
