package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/lately-go/lately/benchmarks/figures"
)

// A report is a document in Markdown about the figures of one file.
type report struct {
	strings.Builder
	figures.Set
	cores int
}

func newReport(raw string) (*report, error) {
	f, err := os.Open(raw)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &report{cores: 2}
	if err := r.Read(f); err != nil {
		return nil, fmt.Errorf("%s: %w", raw, err)
	}
	if text := r.Config("cores"); text != "" {
		if _, err := fmt.Sscan(text, &r.cores); err != nil {
			return nil, fmt.Errorf("%s: cores: %w", raw, err)
		}
	}
	return r, nil
}

// text adds a paragraph.
func (r *report) text(format string, args ...any) {
	fmt.Fprintf(r, strings.TrimSpace(format)+"\n\n", args...)
}

// origin says where the figures are from.
func (r *report) origin() {
	r.text("Measured on %s, %s (%s/%s), %s, commit %s, with `%s`: %s. Medians; the raw samples and benchstat's "+
		"tables are beside this file. **Compare rows, not files:** absolute figures move by a tenth from run to run. "+
		"`!` marks a row whose threads waited for a core for more than 5 %% of the time in the median pass: something else "+
		"ran on the machine, or, with locks, its own goroutines stood in each other's way.",
		r.Config("cpu"), r.Config("machine"), r.Config("goos"), r.Config("goarch"), r.Config("go"), r.Config("commit"),
		r.Config("command"), r.Config("passes"))
}

// A table is written row by row.
func (r *report) head(columns ...string) {
	r.row(columns...)
	fmt.Fprint(r, "|---")
	for range len(columns) - 1 {
		fmt.Fprint(r, "|--:")
	}
	fmt.Fprintln(r, "|")
}

func (r *report) row(cells ...string) { fmt.Fprintf(r, "| %s |\n", strings.Join(cells, " | ")) }

func (r *report) end() { fmt.Fprintln(r) }

// A place is where a figure stands in the file: a benchmark, on so many cores,
// with the keys of its name besides the subject.
type place struct {
	bench string
	procs int
	keys  []string
}

func (p place) of(subject string) []string {
	return append([]string{"subject=" + subject}, p.keys...)
}

// ns is a subject's time, marked when the machine was busy.
func (r *report) ns(p place, subject string) string {
	v, ok := r.Median(p.bench, p.procs, "ns/op", p.of(subject)...)
	if !ok {
		return "-"
	}
	mark := ""
	if wait, ok := r.Median(p.bench, p.procs, "wait-%", p.of(subject)...); ok && wait > 5 {
		mark = "!"
	}
	return digits(v) + mark
}

// ratio is a subject's time over another's, within a pass.
func (r *report) ratio(p place, subject, floor string) (float64, bool) {
	return figures.Ratio(r.Samples(p.bench, p.procs, "ns/op", p.of(subject)...), r.Samples(p.bench, p.procs, "ns/op", p.of(floor)...))
}

// times is the ratio as a cell.
func (r *report) times(p place, subject, floor string) string {
	v, ok := r.ratio(p, subject, floor)
	if !ok {
		return "-"
	}
	return digits(v)
}

// value is a subject's figure in another unit than time.
func (r *report) value(p place, subject, unit string) string {
	v, ok := r.Median(p.bench, p.procs, unit, p.of(subject)...)
	if !ok {
		return "-"
	}
	return digits(v)
}

// digits has three significant ones, and all of a whole part; a zero is 0.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.01:
		return fmt.Sprintf("%.1e", v)
	case v < 1:
		return fmt.Sprintf("%.2g", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// label makes our own rows stand out.
func label(subject string) string {
	if strings.HasPrefix(subject, "lately.") || strings.HasPrefix(subject, "ratelimit,") {
		return "**" + subject + "**"
	}
	return subject
}
