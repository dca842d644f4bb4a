package main

import (
	"slices"
	"strings"
)

// floorNames are the rows of what the machine allows; they are no windows.
var floorNames = []string{
	"noop", "atomic-add", "cas-loop", "striped-add", "mutex", "time.Now", "time.Since", "coarse-load",
	"time.Since,atomic-add", "time.Since,striped-add",
}

func writeWindows(r *report) {
	r.text("# One window")
	r.origin()
	r.windowFloors()
	r.windowRows()
	r.windowTimed()
	r.windowGoroutines()
	r.windowSizes()
	r.article()
}

func (r *report) windowFloors() {
	r.text("## Floors")
	r.text("What the machine allows, in ns: one goroutine on one core, one on each of %d cores, eight on each.", r.cores)
	r.head("step", "1 core", "all cores", "8 a core")
	for _, s := range floorNames {
		r.row(s, r.ns(place{"Add", 1, nil}, s), r.ns(place{"Add", r.cores, nil}, s), r.ns(place{"AddByEight", r.cores, nil}, s))
	}
	r.end()
}

func (r *report) windowRows() {
	r.text("## Adding and reading")
	r.text("Ten slots of 100 ms. ns an operation; **x** is the ratio to the floor in the same pass: an atomic add on one core, "+
		"a striped add on %d. Sums are read on one core while nobody adds. Bytes are on the heap after the first add, for 10 / 60 slots. "+
		"Lost: %s, in a window of 10 s in which nothing may expire. What has no window, no choice of slots or no sum has gaps.",
		r.cores, r.Config("lost-test"))
	r.head("subject", "add, 1 core", "x", "add, all cores", "x", "8 a core", "x", "sum of 10", "sum of 60", "bytes", "lost", "lost %")
	one, all, eight := place{"Add", 1, nil}, place{"Add", r.cores, nil}, place{"AddByEight", r.cores, nil}
	for _, s := range r.Values("Add", "subject") {
		if slices.Contains(floorNames, s) {
			continue
		}
		r.row(label(s), r.ns(one, s), r.times(one, s, "atomic-add"), r.ns(all, s), r.times(all, s, "striped-add"),
			r.ns(eight, s), r.times(eight, s, "striped-add"),
			r.ns(place{"Sum", 1, []string{"slots=10"}}, s), r.ns(place{"Sum", 1, []string{"slots=60"}}, s),
			r.bytes(s, "10")+" / "+r.bytes(s, "60"),
			r.value(place{"Lost", r.cores, nil}, s, "lost"), r.value(place{"Lost", r.cores, nil}, s, "lost-%"))
	}
	r.end()
	r.text("ratecounter keeps a goroutine for each window that counts, whose stack is not in the bytes; asecurityteam keeps every event. " +
		"hystrix has ten slots of a second and RussellLuo two windows, whatever is asked; go-metrics, VictoriaMetrics, prometheus and " +
		"xsync have no window. Sampling is inexact by design. Of ours, Sums has two sums, Rollup eight windows from 5 minutes to a " +
		"day fed by one add (the sum is that of the day), Recent keeps the last 4096 events.")
}

func (r *report) bytes(subject, slots string) string {
	return r.value(place{"Bytes", r.cores, []string{"slots=" + slots}}, subject, "B/window")
}

func (r *report) windowTimed() {
	r.text("## When the caller has the time")
	r.text("No clock is read; x is the ratio to an atomic add.")
	r.head("subject", "1 core", "x", "all cores", "x")
	one, all := place{"AddAt", 1, nil}, place{"AddAt", r.cores, nil}
	for _, s := range r.Values("AddAt", "subject") {
		r.row(label(s), r.ns(one, s), r.times(one, s, "atomic-add"), r.ns(all, s), r.times(all, s, "atomic-add"))
	}
	r.end()
}

func (r *report) windowGoroutines() {
	r.text("## One to sixteen goroutines")
	r.text("On %d cores, all adding to one window; ns an add.", r.cores)
	counts := r.Values("Goroutines", "goroutines")
	r.head(append([]string{"subject"}, counts...)...)
	for _, s := range r.Values("Goroutines", "subject") {
		cells := []string{label(s)}
		for _, n := range counts {
			cells = append(cells, r.ns(place{"Goroutines", r.cores, []string{"goroutines=" + n}}, s))
		}
		r.row(cells...)
	}
	r.end()
}

func (r *report) windowSizes() {
	r.text("## How many slots?")
	r.text("More slots cut a finer left edge: at a steady rate lo and hi are one slot apart, 1/slots of the count. They cost bytes, " +
		"reading, and the first add after an idle time of a whole window (here with the caller's time). Bytes / ns of a sum / ns of that add.")
	sizes := r.Values("Sum", "slots")
	edges := map[string]string{"10": "10 %", "60": "1.7 %", "600": "0.17 %", "3600": "0.03 %"}
	columns := []string{"subject"}
	for _, n := range sizes {
		columns = append(columns, n+" ("+edges[n]+")")
	}
	r.head(columns...)
	for _, s := range r.Values("Sum", "subject") {
		if _, ok := r.Median("Sum", 1, "ns/op", "slots=3600", "subject="+s); !ok {
			continue
		}
		cells := []string{label(s)}
		for _, n := range sizes {
			keys := []string{"slots=" + n}
			cells = append(cells, strings.Join([]string{
				r.bytes(s, n), r.ns(place{"Sum", 1, keys}, s), r.ns(place{"Idle", 1, keys}, s),
			}, " / "))
		}
		r.row(cells...)
	}
	r.end()
}
