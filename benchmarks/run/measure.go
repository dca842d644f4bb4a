package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A batch is one call of a test binary.
type batch struct {
	bench string // a regular expression
	procs string // as -test.cpu
	time  string // as -test.benchtime
	count int
	more  []string
	once  bool // in the first pass only
	pass  int  // how many passes the subject has; the same in all its batches
}

func (p plan) windowBatches() []batch {
	n, some := p.windows.passes, p.windows.time.String()
	both, all := fmt.Sprintf("1,%d", p.cores), fmt.Sprint(p.cores)
	return []batch{
		{bench: "^Benchmark(Add|AddAt|Sum)$", procs: both, time: some, pass: n},
		{bench: "^Benchmark(AddByEight|Goroutines|FalseSharing)$", procs: all, time: some, pass: n},
		{bench: "^BenchmarkIdle$", procs: "1", time: some, pass: n, once: true},
		{bench: "^Benchmark(Bytes|Events|SamplingError)$", procs: all, time: "1x", pass: n, once: true},
		{bench: "^BenchmarkLost$", procs: all, time: "1x", pass: n, once: true, more: []string{"-lost", p.lost.String()}},
	}
}

func (p plan) keyedBatches() []batch {
	n, some := p.keyed.passes, p.keyed.time.String()
	both, all := fmt.Sprintf("1,%d", p.cores), fmt.Sprint(p.cores)
	flags := []string{"-keys", fmt.Sprint(p.keyed.keys), "-series", p.keyed.series}
	return []batch{
		{bench: "^BenchmarkTable$", procs: both, time: some, count: p.keyed.count, pass: n, more: flags},
		{bench: "^BenchmarkGoroutines$", procs: all, time: some, count: p.keyed.count, pass: n, more: flags, once: true},
		{bench: "^BenchmarkKeys$", procs: "1", time: some, count: p.keyed.count, pass: n, more: flags, once: true},
	}
}

func (p plan) limitBatches() []batch {
	l := p.limits
	both, one, some := fmt.Sprintf("1,%d", p.cores), "1", fmt.Sprintf("%dx", l.events)
	flags := []string{"-keys", fmt.Sprint(l.keys), "-series", l.series, "-full", fmt.Sprint(l.full)}
	return []batch{
		{bench: "^BenchmarkTake$", procs: both, time: some, pass: l.passes, more: flags},
		{bench: "^BenchmarkKeys$", procs: both, time: some, pass: l.passes, more: flags},
		{bench: "^BenchmarkOneKey$", procs: both, time: some, pass: l.passes, more: flags},
		{bench: "^Benchmark(Traffic|Paced)$", procs: one, time: some, pass: l.passes, more: flags},
		{bench: "^BenchmarkFull$", procs: fmt.Sprint(p.cores), time: "1x", pass: l.passes, more: flags, once: true},
	}
}

// measure writes SUBJECT.txt: what machine this is, then the output of all
// batches, in passes, so that a slow moment does not hit all samples of a row.
func (r *runner) measure(subject string, batches []batch) error {
	dir, err := os.MkdirTemp("", "lately-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, subject+".test")
	if err := r.command(os.Stderr, "go", "test", "-c", "-o", binary, "./"+subject); err != nil {
		return err
	}
	raw, err := os.Create(filepath.Join(r.out, subject+".txt"))
	if err != nil {
		return err
	}
	defer raw.Close()
	fmt.Fprint(raw, r.header(subject))
	began := time.Now()
	for pass := range batches[0].pass {
		for _, b := range batches {
			if b.once && pass > 0 {
				continue
			}
			log.Printf("%s: pass %d of %d: %s", subject, pass+1, b.pass, b.bench)
			if err := r.one(raw, binary, b); err != nil {
				return err
			}
		}
	}
	log.Printf("%s: %v", subject, time.Since(began).Round(time.Second))
	return raw.Close()
}

func (r *runner) one(raw io.Writer, binary string, b batch) error {
	args := []string{
		"-test.run", "^$", "-test.bench", b.bench, "-test.cpu", b.procs,
		"-test.benchtime", b.time, "-test.count", fmt.Sprint(max(b.count, 1)), "-test.timeout", "30m",
	}
	cmd := exec.CommandContext(r.ctx, binary, append(args, b.more...)...)
	// Without a limit the heap may grow to twice what ten million keys take.
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=6GiB")
	cmd.Stdout, cmd.Stderr = raw, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(binary), strings.Join(args, " "), err)
	}
	return nil
}

// header is what the reader of a result file must know, as configuration lines
// of Go's benchmark format.
func (r *runner) header(subject string) string {
	var b strings.Builder
	line := func(key, format string, args ...any) { fmt.Fprintf(&b, key+": "+format+"\n", args...) }
	line("command", "%s", strings.Join(append([]string{"go run ./run"}, os.Args[1:]...), " "))
	line("date", "%s", time.Now().UTC().Format(time.DateOnly))
	line("commit", "%s", r.commit())
	line("go", "%s", runtime.Version())
	line("machine", "%d cores", runtime.NumCPU())
	line("cores", "%d", r.plan.cores)
	switch subject {
	case "windows":
		line("passes", "%d of %v a row", r.plan.windows.passes, r.plan.windows.time)
		line("lost-test", "8 goroutines, slots of 10 ms, %v", r.plan.lost)
	case "keyed":
		line("passes", "%d times %d of %v a row", r.plan.keyed.passes, r.plan.keyed.count, r.plan.keyed.time)
		line("keys", "%d", r.plan.keyed.keys)
	case "limits":
		line("passes", "%d of %d events a row", r.plan.limits.passes, r.plan.limits.events)
		line("keys", "%d", r.plan.limits.keys)
	}
	return b.String()
}

// commit names the source that was measured, as well as git can.
func (r *runner) commit() string {
	out, err := exec.CommandContext(r.ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
