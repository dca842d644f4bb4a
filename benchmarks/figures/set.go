package figures

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Set is the figures of one file. The zero Set is empty and ready to use.
type Set struct {
	config  map[string]string
	samples map[name]map[string][]float64 // by unit, in the order of the passes
	order   []name
}

// A name is that of a benchmark without its number of processors, keys sorted.
type name struct {
	text  string
	procs int
}

// Read adds the lines of one file: "key: value" lines of configuration and
// results. Lines of any other kind are passed over.
func (s *Set) Read(r io.Reader) error {
	if s.samples == nil {
		s.config, s.samples = map[string]string{}, map[name]map[string][]float64{}
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch key, value, ok := strings.Cut(line, ": "); {
		case strings.HasPrefix(line, "Benchmark"):
			if err := s.result(strings.Fields(line)); err != nil {
				return fmt.Errorf("%w in %q", err, line)
			}
		case ok && !strings.ContainsAny(key, " \t"):
			s.config[key] = strings.TrimSpace(value)
		}
	}
	return lines.Err()
}

// result reads name, iterations and pairs of value and unit.
func (s *Set) result(fields []string) error {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return nil // the line of a benchmark that has only begun
	}
	n := parse(strings.TrimPrefix(fields[0], "Benchmark"))
	if s.samples[n] == nil {
		s.samples[n] = map[string][]float64{}
		s.order = append(s.order, n)
	}
	for pair := range slices.Chunk(fields[2:], 2) {
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return err
		}
		s.samples[n][pair[1]] = append(s.samples[n][pair[1]], v)
	}
	return nil
}

// parse splits off the number of processors, which the testing package leaves
// out when it is 1, and sorts the keys.
func parse(text string) name {
	procs := 1
	if i := strings.LastIndexByte(text, '-'); i >= 0 {
		if p, err := strconv.Atoi(text[i+1:]); err == nil {
			text, procs = text[:i], p
		}
	}
	bench, rest, _ := strings.Cut(text, "/")
	if rest == "" {
		return name{bench, procs}
	}
	return join(bench, procs, strings.Split(rest, "/"))
}

func join(bench string, procs int, keys []string) name {
	keys = slices.Sorted(slices.Values(keys))
	return name{strings.Join(append([]string{bench}, keys...), "/"), procs}
}

// Config returns the value of a line of configuration, the last one of that key.
func (s *Set) Config(key string) string { return s.config[key] }

// Keys returns the keys of all lines of configuration, sorted.
func (s *Set) Keys() []string { return slices.Sorted(maps.Keys(s.config)) }

// Samples returns the values of a benchmark in one unit, a pass after the other.
// Keys are as in its name, "subject=mutex", in any order.
func (s *Set) Samples(bench string, procs int, unit string, keys ...string) []float64 {
	return s.samples[join(bench, procs, keys)][unit]
}

// Median returns the median over the passes, and whether there is a figure.
func (s *Set) Median(bench string, procs int, unit string, keys ...string) (float64, bool) {
	return median(s.Samples(bench, procs, unit, keys...))
}

// Values returns the values that a key has in the names of a benchmark, in the
// order in which they first came.
func (s *Set) Values(bench, key string) (values []string) {
	for _, n := range s.order {
		parts := strings.Split(n.text, "/")
		for _, part := range parts[1:] {
			v, ok := strings.CutPrefix(part, key+"=")
			if ok && parts[0] == bench && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	return values
}

// Ratio returns the median over the passes of a's value over b's in the same
// pass.
func Ratio(a, b []float64) (float64, bool) {
	n := min(len(a), len(b))
	ratios := make([]float64, n)
	for i := range n {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func median(all []float64) (float64, bool) {
	if len(all) == 0 {
		return 0, false
	}
	all = slices.Sorted(slices.Values(all))
	mid := len(all) / 2
	if len(all)%2 == 0 {
		return (all[mid-1] + all[mid]) / 2, true
	}
	return all[mid], true
}
