// Command replay times `lately replay` as a whole process, beside goaccess and
// an awk that counts the first field, on the same file in the same run, and
// prints a table in Markdown. The programs take turns, so that a slow moment of
// the machine hits them all.
package main

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
)

// rules is what lately judges while it is timed: one limit, one ban, one hot
// rule, besides the busiest keys with their peaks.
var rules = []string{"--limit", "60/60s", "--ban", "100/300s:1h", "--hot", "200/60s", "--json"}

// A subject is one program on one form of the log.
type subject struct {
	name  string
	args  []string
	times []time.Duration
	user  []time.Duration // user and system time
	rss   int64           // KiB, largest
}

func main() {
	log.SetFlags(0)
	file := flag.String("file", "", "log to replay, plain or .gz (default: a generated one)")
	lines := flag.Int("lines", 529_110, "lines of the generated log")
	runs := flag.Int("runs", 7, "times each program runs")
	flag.Parse()
	if err := bench(*file, *lines, *runs, os.Stdout); err != nil {
		log.Fatal("replay: ", err)
	}
}

func bench(file string, lines, runs int, out io.Writer) error {
	dir, err := os.MkdirTemp("", "lately-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plain, zipped := filepath.Join(dir, "access.log"), filepath.Join(dir, "access.log.gz")
	if err := prepare(file, lines, plain, zipped); err != nil {
		return err
	}
	lately := filepath.Join(dir, "lately")
	if text, err := exec.Command("go", "build", "-C", "..", "-trimpath", "-o", lately, "./cmd/lately").CombinedOutput(); err != nil {
		return fmt.Errorf("building lately: %v\n%s", err, text)
	}
	subjects := []*subject{
		{name: "goaccess", args: []string{"goaccess", plain, "--log-format=COMBINED", "--no-progress", "-o", filepath.Join(dir, "report.json")}},
		{name: "lately replay", args: slices.Concat([]string{lately, "replay"}, rules, []string{plain})},
		{name: "lately replay, the .gz itself", args: slices.Concat([]string{lately, "replay"}, rules, []string{zipped})},
		{name: "lately replay, GOMAXPROCS=1", args: slices.Concat([]string{"env", "GOMAXPROCS=1", lately, "replay"}, rules, []string{plain})},
		{name: "awk, counting the first field", args: []string{"awk", "{n[$1]++} END {for (k in n) c++; print c}", plain}},
	}
	subjects = slices.DeleteFunc(subjects, func(s *subject) bool {
		_, err := exec.LookPath(s.args[0])
		if err != nil {
			log.Printf("SKIP %s: %v", s.name, err)
		}
		return err != nil
	})
	for run := range runs + 1 { // the first warms the cache and is not counted
		for _, s := range subjects {
			if err := s.run(run > 0); err != nil {
				return err
			}
		}
	}
	report(out, subjects, plain, zipped, runs)
	return nil
}

// prepare puts the log into plain and zipped.
func prepare(file string, lines int, plain, zipped string) error {
	p, err := os.Create(plain)
	if err != nil {
		return err
	}
	defer p.Close()
	if file == "" {
		w := bufio.NewWriter(p)
		if _, err := accesslogtest.Write(w, accesslogtest.Config{Lines: lines}); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return compress(plain, zipped)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var src io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if src, err = gzip.NewReader(f); err != nil {
			return err
		}
		original, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(zipped, original, 0o600); err != nil {
			return err
		}
	}
	if _, err := io.Copy(p, src); err != nil {
		return err
	}
	if src == f {
		return compress(plain, zipped)
	}
	return nil
}

func compress(plain, zipped string) error {
	in, err := os.Open(plain)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(zipped)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	if _, err := io.Copy(z, in); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Close()
}

func (s *subject) run(count bool) error {
	cmd := exec.Command(s.args[0], s.args[1:]...)
	started := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v\n%.500s", s.name, err, text)
	}
	elapsed := time.Since(started)
	if !count {
		return nil
	}
	s.times = append(s.times, elapsed)
	s.user = append(s.user, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.rss = max(s.rss, usage.Maxrss)
	}
	return nil
}

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }

func report(out io.Writer, subjects []*subject, plain, zipped string, runs int) {
	size := func(path string) float64 {
		st, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return float64(st.Size()) / 1e6
	}
	lines := 0
	if f, err := os.Open(plain); err == nil {
		for s := bufio.NewScanner(f); s.Scan(); {
			lines++
		}
		f.Close()
	}
	fmt.Fprintf(out, "%d lines, %.1f MB, %.1f MB as .gz; %d runs each, in turns; %s, %d cores (%s)\n\n",
		lines, size(plain), size(zipped), runs, runtime.Version(), runtime.NumCPU(), cpu())
	fmt.Fprintf(out, "| program | median | min | max | of goaccess | M lines/s | CPU | peak memory |\n|---|---|---|---|---|---|---|---|\n")
	base := median(subjects[0].times)
	for _, s := range subjects {
		m := median(s.times)
		fmt.Fprintf(out, "| %s | %.3f s | %.3f s | %.3f s | %.3f | %.2f | %.2f s | %d MB |\n", s.name, m.Seconds(),
			slices.Min(s.times).Seconds(), slices.Max(s.times).Seconds(), m.Seconds()/base.Seconds(),
			float64(lines)/m.Seconds()/1e6, median(s.user).Seconds(), s.rss/1024)
	}
}

// cpu returns the processor's name, where /proc says it.
func cpu() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return runtime.GOARCH
}
