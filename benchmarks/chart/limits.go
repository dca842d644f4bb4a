package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/lately-go/lately/benchmarks/figures"
)

func limitCharts(s *figures.Set, cores int) map[string]string {
	charts := map[string]string{}
	for _, c := range []struct {
		file, title string
		procs       int
	}{
		{"limits-1.svg", "One decision about one event of one key, one core", 1},
		{"limits-all.svg", fmt.Sprintf("One decision about one event of one key, %d cores", cores), cores},
	} {
		if rows := limitBars(s, c.procs, cores); len(rows) > 0 {
			charts[c.file] = bars([3]string{
				c.title, s.Config("keys") + " keys, Zipf 1.1, a limit of 1000 a key that the hottest reach; ns, less is better", machine(s),
			}, "ns", rows)
		}
	}
	if rows := peerBars(s, cores); len(rows) > 1 {
		charts["limits-peers.svg"] = bars([3]string{
			fmt.Sprintf("One decision in a Go program, %d cores", cores), s.Config("keys") + " keys, Zipf 1.1, a limit of 1000 a key; ns, less is better", machine(s),
		}, "ns", rows)
	}
	if marks := s.Values("Keys", "keys"); len(marks) > 0 {
		charts["limits-keys.svg"] = lines([3]string{
			"As keys grow: one decision about one event of one key, one core", "ns, less is better; logarithmic; Zipf 1.1", machine(s),
		}, "ns", append(marks, s.Config("keys")), limitLines(s, marks))
	}
	return charts
}

func limitBars(s *figures.Set, procs, cores int) (rows []bar) {
	for _, subject := range s.Values("Take", "subject") {
		v, ok := s.Median("Take", procs, "ns/op", "subject="+subject, "op=zipf")
		if !ok || secondRow(subject) {
			continue
		}
		bytes, _ := s.Median("Take", cores, "B/key", "subject="+subject, "op=fill")
		rows = append(rows, bar{subject, v, fmt.Sprintf("%.0f B a key", bytes), kindOf(subject)})
	}
	return rows
}

// peerBars are the limiters of others, and the default of ours, on all cores.
func peerBars(s *figures.Set, cores int) (rows []bar) {
	for _, row := range limitBars(s, cores, cores) {
		switch {
		case row.label == "map,mutex", row.label == "floor64": // are no limiters
		case row.kind == isPeer:
			rows = append(rows, row)
		case row.label == "ratelimit,sliding,1000-a-minute":
			row.label = "lately"
			rows = append(rows, row)
		}
	}
	return rows
}

// secondRow reports whether another row stands for the algorithm: that of the
// usual limit. Of sliding, which has two forms, both are shown.
func secondRow(subject string) bool {
	return strings.HasSuffix(subject, ",60-a-minute") && !strings.HasPrefix(subject, "ratelimit,sliding,")
}

// limitLines are a few rows over the numbers of keys, the largest one from the
// benchmark of all rows.
func limitLines(s *figures.Set, marks []string) (rows []line) {
	most := series(s, "Take", 1, "op", []string{"zipf"})
	for _, row := range series(s, "Keys", 1, "keys", marks, "op=zipf") {
		switch row.label {
		case "httprate.LimitCounter", "throttled.memstore,map", "go-limiter.memorystore", "rate.Limiter,256-shards", "ulule.memory",
			"hash,one-line", "ratelimit,sliding,60-a-minute", "ratelimit,sliding,1000-a-minute", "ratelimit,gcra,1000-a-minute":
		default:
			continue
		}
		last := math.NaN()
		for _, m := range most {
			if m.label == row.label {
				last = m.values[0]
			}
		}
		row.values = append(row.values, last)
		rows = append(rows, row)
	}
	return rows
}
