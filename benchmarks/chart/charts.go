package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/lately-go/lately/benchmarks/figures"
)

// leftOut are rows that the bar charts do without: what is no window, and forms
// of rows that are there.
var leftOut = []string{
	"noop", "atomic-add", "cas-loop", "striped-add", "mutex", "time.Now", "time.Since", "coarse-load",
	"hystrix.Number", "RussellLuo.Limiter", "go-metrics.Meter", "VictoriaMetrics.Counter", "prometheus.Counter", "xsync.Counter",
	"O3-sampling", "O3-wheel-one-clock-read", "lately.Counter,AddSum", "lately.Sums", "lately.Rollup,8-spans", "lately.Recent", "lately.Sampled,1in16", "lately.Sampler,1in16",
	"key-only", "hash", "lately.Table,10-slots,AddSum",
	"ratelimit,exact,1000-a-minute", "ratelimit,sliding,1000-a-minute",
}

func windowCharts(s *figures.Set, cores int) map[string]string {
	charts := map[string]string{}
	for _, c := range []struct {
		file, bench, title string
		procs              int
	}{
		{"add-1.svg", "Add", "One add to a sliding window, one core", 1},
		{"add-8.svg", "AddByEight", fmt.Sprintf("One add to one sliding window, %d goroutines on %d cores", 8*cores, cores), cores},
	} {
		var rows []bar
		for _, subject := range s.Values(c.bench, "subject") {
			v, ok := s.Median(c.bench, c.procs, "ns/op", "subject="+subject)
			if !ok || slices.Contains(leftOut, subject) {
				continue
			}
			rows = append(rows, bar{subject, v, lost(s, cores, subject), kindOf(subject)})
		}
		if len(rows) > 0 {
			charts[c.file] = bars([3]string{c.title, "10 slots of 100 ms; ns, less is better. Grey: peers and origins; pale: floors. Losses are at slot changes.", machine(s)}, "ns", rows)
		}
	}
	if marks := s.Values("Goroutines", "goroutines"); len(marks) > 0 {
		charts["goroutines.svg"] = lines([3]string{
			fmt.Sprintf("Adding to one window with 1 to 16 goroutines, %d cores", cores),
			"ns an add, less is better; logarithmic", machine(s),
		}, "ns", marks, series(s, "Goroutines", cores, "goroutines", marks))
	}
	return charts
}

// lost says what the window loses, if it is more than nothing.
func lost(s *figures.Set, cores int, subject string) string {
	n, ok := s.Median("Lost", cores, "lost", "subject="+subject)
	percent, _ := s.Median("Lost", cores, "lost-%", "subject="+subject)
	switch {
	case !ok || n == 0:
		return ""
	case percent >= 0.1:
		return fmt.Sprintf("loses %.0f %%", percent)
	}
	return fmt.Sprintf("lost %.0f", n)
}

func keyedCharts(s *figures.Set, cores int) map[string]string {
	charts := map[string]string{}
	for _, c := range []struct {
		file, title string
		procs       int
	}{
		{"keyed-1.svg", "One event of one key, one core", 1},
		{"keyed-all.svg", fmt.Sprintf("One event of one key, %d cores", cores), cores},
	} {
		var rows []bar
		for _, subject := range s.Values("Table", "subject") {
			v, ok := s.Median("Table", c.procs, "ns/op", "subject="+subject, "op=zipf")
			if !ok || slices.Contains(leftOut, subject) {
				continue
			}
			bytes, _ := s.Median("Table", cores, "B/key", "subject="+subject, "op=fill")
			rows = append(rows, bar{subject, v, fmt.Sprintf("%.0f B a key", bytes), kindOf(subject)})
		}
		if len(rows) > 0 {
			charts[c.file] = bars([3]string{c.title, s.Config("keys") + " keys, Zipf 1.1; ns, less is better", machine(s)}, "ns", rows)
		}
	}
	if marks := s.Values("Keys", "keys"); len(marks) > 0 {
		charts["keys.svg"] = lines([3]string{
			"As keys grow: one event of one key, one core",
			"ns, less is better; logarithmic; Zipf 1.1", machine(s),
		}, "ns", marks, series(s, "Keys", 1, "keys", marks, "op=zipf"))
	}
	if marks := s.Values("Goroutines", "goroutines"); len(marks) > 0 {
		charts["keyed-goroutines.svg"] = lines([3]string{
			fmt.Sprintf("%s keys with 1 to 16 goroutines, %d cores", s.Config("keys"), cores),
			"ns an event, less is better; logarithmic; Zipf 1.1", machine(s),
		}, "ns", marks, series(s, "Goroutines", cores, "goroutines", marks))
	}
	return charts
}

func series(s *figures.Set, bench string, procs int, key string, marks []string, keys ...string) (rows []line) {
	for _, subject := range s.Values(bench, "subject") {
		row := line{label: subject, kind: kindOf(subject)}
		for _, m := range marks {
			v, ok := s.Median(bench, procs, "ns/op", append([]string{"subject=" + subject, key + "=" + m}, keys...)...)
			if !ok {
				v = math.NaN()
			}
			row.values = append(row.values, v)
		}
		rows = append(rows, row)
	}
	return rows
}

func machine(s *figures.Set) string {
	return fmt.Sprintf("%s, %s, %s", s.Config("cpu"), s.Config("machine"), s.Config("go"))
}
