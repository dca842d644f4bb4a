package main

import (
	"cmp"
	"fmt"
	"slices"
)

// A bar is one row of a bar chart.
type bar struct {
	label string
	value float64
	note  string // behind the value
	kind  kind
}

// bars draws horizontal bars, the shortest first, on a scale that begins at 0.
func bars(title [3]string, unit string, rows []bar) string {
	const (
		width  = 760
		labels = 230 // space for them
		notes  = 170
		step   = 24
		top    = 90
	)
	rows = slices.SortedStableFunc(slices.Values(rows), func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	c := newCard(width, top+step*len(rows)+margin, title)
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, r.value)
	}
	for i, r := range rows {
		y := float64(top + step*i)
		c.text(labels, y+15, "end", "%s", r.label)
		length := r.value / longest * (width - labels - notes)
		c.rect(labels+8, y+3, max(length, 1), step-8, string(r.kind))
		text := fmt.Sprintf("%s %s", short(r.value), unit)
		if r.note != "" {
			text += ", " + r.note
		}
		c.text(labels+8+length+6, y+15, "soft", "%s", text)
	}
	return c.done()
}

// short has two or three significant digits.
func short(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
