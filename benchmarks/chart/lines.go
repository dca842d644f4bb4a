package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A line is one series of a line chart: a value, or NaN, for each mark of the
// horizontal axis.
type line struct {
	label  string
	values []float64
	kind   kind
}

// dashes tell lines of one kind apart.
var dashes = []string{"", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"}

// lines draws series over evenly spaced marks, on a logarithmic vertical scale.
func lines(title [3]string, unit string, marks []string, rows []line) string {
	const (
		width, height = 760, 436
		left, right   = 70, 250 // space for the scale and for the labels
		top, bottom   = 96, 46
	)
	c := newCard(width, height, title)
	lo, hi := limits(rows)
	x := func(i int) float64 {
		return left + float64(i)*(width-left-right)/float64(max(len(marks)-1, 1))
	}
	y := func(v float64) float64 {
		return height - bottom - (math.Log(v)-math.Log(lo))/(math.Log(hi)-math.Log(lo))*(height-top-bottom)
	}
	for _, v := range ticks(lo, hi) {
		c.rule(left, y(v), width-right, y(v))
		c.text(left-8, y(v)+4, "soft end", "%g %s", v, unit)
	}
	for i, m := range marks {
		c.text(x(i), height-bottom+20, "soft mid", "%s", m)
	}
	ends := make([]label, 0, len(rows))
	seen := map[kind]int{}
	for _, r := range rows {
		dash := dashes[seen[r.kind]%len(dashes)]
		seen[r.kind]++
		path, last := "", math.NaN()
		for i, v := range r.values {
			if math.IsNaN(v) {
				continue
			}
			path += fmt.Sprintf("%c%.1f %.1f", "ML"[min(len(path), 1)], x(i), y(v))
			last = v
		}
		if path == "" {
			continue
		}
		c.put(`<path class="line %s" stroke-dasharray="%s" d="%s"/>`+"\n", r.kind, dash, path)
		ends = append(ends, label{r.label + "  " + short(last), y(last)})
	}
	for _, l := range spread(ends, font+3) {
		c.text(width-right+10, l.y+4, "", "%s", l.text)
	}
	return c.done()
}

// limits returns the ends of the scale: 1, 2 or 5 times a power of ten.
func limits(rows []line) (lo, hi float64) {
	lo, hi = math.Inf(1), 0
	for _, r := range rows {
		for _, v := range r.values {
			if v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if hi == 0 {
		return 1, 10
	}
	all := ticks(lo/10, hi*10)
	below, _ := slices.BinarySearch(all, lo*1.0001)
	above, _ := slices.BinarySearch(all, hi*1.0001)
	return all[below-1], all[above]
}

// ticks returns 1, 2 and 5 times the powers of ten from lo to hi.
func ticks(lo, hi float64) (all []float64) {
	for p := math.Pow(10, math.Floor(math.Log10(lo))); p <= hi; p *= 10 {
		for _, f := range []float64{1, 2, 5} {
			if v := f * p; v >= lo*0.999 && v <= hi*1.001 {
				all = append(all, v)
			}
		}
	}
	return all
}

// A label is the name of a line, at its end.
type label struct {
	text string
	y    float64
}

// spread moves labels so that none overlaps the one above it.
func spread(labels []label, apart float64) []label {
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(labels); i++ {
		labels[i].y = max(labels[i].y, labels[i-1].y+apart)
	}
	return labels
}
