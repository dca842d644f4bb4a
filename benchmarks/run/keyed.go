package main

// keyedFloor is the row that the others are divided by.
const keyedFloor = "hash,one-line"

func writeKeyed(r *report) {
	r.text("# %s keys", r.Config("keys"))
	r.origin()
	r.keyedRows()
	r.keyedSeries("zipf")
	r.keyedSeries("uniform")
	r.keyedGoroutines()
}

func (r *report) keyedRows() {
	r.text("Keys are \"user:123456\", all inserted before the timing, built in a small buffer for each event (rows of plain maps get " +
		"strings of their own). Zipf has the exponent 1.1. ns an event; **x** is the ratio to \"hash, one line\" in the same pass: " +
		"hash the key, add to the word that it chooses. Bytes and objects are on the heap, for each key, its string included where it " +
		"is kept. GC is a full collection with the table alive. Limiters have limits that nothing reaches, unless the row says so: " +
		"then hot keys are refused.")
	r.head("subject", "zipf, 1 core", "x", "zipf, all cores", "x", "uniform, 1 core", "x", "uniform, all cores", "x",
		"allocs", "B/key", "objects/key", "GC ms", "insert ns")
	for _, s := range r.Values("Table", "subject") {
		cells := []string{label(s)}
		for _, op := range []string{"op=zipf", "op=uniform"} {
			for _, procs := range []int{1, r.cores} {
				p := place{"Table", procs, []string{op}}
				cells = append(cells, r.ns(p, s), r.times(p, s, keyedFloor))
			}
		}
		fill := place{"Table", r.cores, []string{"op=fill"}}
		cells = append(cells, r.value(place{"Table", 1, []string{"op=zipf"}}, s, "allocs/op"),
			r.value(fill, s, "B/key"), r.value(fill, s, "objects/key"), r.value(fill, s, "gc-ms"), r.value(fill, s, "insert-ns/key"))
		r.row(cells...)
	}
	r.end()
	r.text("httprate holds one map here and two in steady state, so twice the bytes. Of what counts without a window, the maps, " +
		"nothing ever leaves.")
}

// keyedSeries is how the cost grows with the number of keys.
func (r *report) keyedSeries(op string) {
	r.text("## As keys grow, %s, one core", op)
	r.text("ns an event, and in brackets the ratio to \"hash, one line\" with as many keys.")
	counts := r.Values("Keys", "keys")
	r.head(append([]string{"subject"}, counts...)...)
	for _, s := range r.Values("Keys", "subject") {
		cells := []string{label(s)}
		for _, n := range counts {
			p := place{"Keys", 1, []string{"keys=" + n, "op=" + op}}
			cells = append(cells, r.ns(p, s)+" ("+r.times(p, s, keyedFloor)+")")
		}
		r.row(cells...)
	}
	r.end()
}

func (r *report) keyedGoroutines() {
	r.text("## One to sixteen goroutines")
	r.text("On %d cores, Zipf; ns an event.", r.cores)
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
