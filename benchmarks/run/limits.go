package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// givesUp is how a row decides, and what that allows at worst in a window (N is
// the limit) or costs otherwise. Of those of ours the same stands, with proofs,
// in docs/dev/proofs.md.
var givesUp = map[string]string{
	"hash,one-line":            "keys, windows and limits",
	"hash,one-line,time.Since": "keys, windows and limits",
	"floor64":                  "keys, windows and limits",
	"map,mutex":                "windows: nothing is ever evicted",
	"httprate.LimitCounter":    "two windows, weighted: near 2N in a window, and refuses wrongly near the limit. Without its lock, reading and adding are two steps. Knows keys by a 64-bit hash without a seed",
	"httprate.RateLimiter":     "the same with its lock, one for all keys, and its header fields",
	"throttled.memstore,map":   "GCRA: 2N in a window. No key ever leaves. An event of a key that many cores want may fail with an error",
	"throttled.memstore,LRU":   "GCRA: 2N in a window. A flood of new keys makes it forget limited ones",
	"go-limiter.memorystore":   "fixed window: 2N across its edge. A key stays for 12 hours",
	"rate.Limiter,256-shards":  "token bucket: 2N in a window. No key ever leaves",
	"rate.Limiter,sync.Map":    "token bucket: 2N in a window. No key ever leaves",
	"ulule.memory":             "fixed window: 2N across its edge",
	"tollbooth":                "token bucket: 2N in a window. A key stays for 10 years by default",
	"sentinel.hotspot":         "fixed window that refills: 2N across its edge. LRU: a flood of new keys makes it forget limited ones. Its slot alone, without the statistics of an entry",

	"ratelimit,sliding,60-a-minute":   "nothing: exact up to 128",
	"ratelimit,sliding,1000-a-minute": "never over N; refuses up to a 60th of the span longer than needed",
	"ratelimit,exact":                 "nothing but bytes",
	"ratelimit,two-bucket":            "two windows, weighted: near 2N in a window, and refuses wrongly near the limit",
	"ratelimit,gcra":                  "N + burst in a window",
	"ratelimit,leaky-bucket":          "N + burst in a window, spread by waiting",
	"ratelimit,fixed":                 "2N across its edge",
	"ratelimit,calendar":              "2N across its edge",
	"ratelimit,in-flight":             "nothing: at most N at the same time",
	"ratelimit,sliding,ban":           "as sliding, with a ban after 20 refusals in 5 minutes",
	"ratelimit,sliding,8-rules":       "as sliding: eight limits on one key, decided together",
}

// limitGivesUp looks a row up by its name, and then without its limit.
func limitGivesUp(subject string) string {
	name := subject
	if i := strings.LastIndexByte(subject, ','); i > 0 && strings.HasSuffix(subject, "-a-minute") {
		name = subject[:i]
	}
	return cmp.Or(givesUp[subject], givesUp[name], "-")
}

// limitRow is the row of an algorithm of ours under the usual limit.
func limitRow(algorithm string) string { return "ratelimit," + algorithm + ",1000-a-minute" }

func writeLimits(r *report) {
	r.text("# Decisions: %s keys", r.Config("keys"))
	r.origin()
	r.limitRows()
	r.limitGoals()
	r.limitSeries("zipf", 1)
	r.limitSeries("zipf", r.cores)
	r.limitSeries("uniform", 1)
	r.limitOneKey()
	r.limitBytes()
}

func (r *report) limitRows() {
	r.text("ns a decision about one event of one key; **x** is the ratio to \"hash,one-line\" in the same pass: hash the key, add to " +
		"the word that it chooses. The third floor locks a line of 64 bytes a key and writes the time there: what is left of a decision " +
		"without the key, the window and the judgement. Keys are \"user:123456\", all inserted before the timing, built in a small buffer for each event. All " +
		"rows have a limit of 1000 a key where they do not say another: ours in a minute, the peers' in a day, so that no window of theirs " +
		"ends meanwhile. Zipf has the exponent 1.1: the hottest few dozen keys (a few hundred where the limit is 60) reach their limit, " +
		"all others are allowed; **refused** is the share of events, on one core. Every sample has as many events as any other. " +
		"**traffic** is Zipf at the caller's time, as many events a minute as there are keys: there windows slide while they are measured, and " +
		"no clock is read. Bytes and " +
		"objects are on the heap after one event of each key, the key's string included where it is kept. GC is a full collection with " +
		"the limiter alive.")
	r.head("subject", "zipf, 1 core", "x", "zipf, all cores", "x", "uniform, 1 core", "x", "uniform, all cores", "x", "traffic, 1 core",
		"refused %", "allocs", "B/key", "objects/key", "GC ms", "insert ns", "what it gives up")
	for _, s := range r.Values("Take", "subject") {
		cells := []string{label(s)}
		for _, op := range []string{"op=zipf", "op=uniform"} {
			for _, procs := range []int{1, r.cores} {
				p := place{"Take", procs, []string{op}}
				cells = append(cells, r.ns(p, s), r.times(p, s, keyedFloor))
			}
		}
		zipf, fill := place{"Take", 1, []string{"op=zipf"}}, place{"Take", r.cores, []string{"op=fill"}}
		cells = append(cells, r.ns(place{"Traffic", 1, nil}, s),
			r.value(zipf, s, "refused-%"), r.value(zipf, s, "allocs/op"),
			r.value(fill, s, "B/key"), r.value(fill, s, "objects/key"), r.value(fill, s, "gc-ms"), r.value(fill, s, "insert-ns/key"),
			limitGivesUp(s))
		r.row(cells...)
	}
	r.end()
	r.text("httprate holds one map here and two in steady state, so twice the bytes. Rows that refuse by building an error, as " +
		"sentinel does, pay for it.")
}

// limitSeries is how the cost grows with the number of keys.
func (r *report) limitSeries(op string, procs int) {
	r.text("## As keys grow, %s, %s", op, r.on(procs))
	r.text("ns a decision, and in brackets the ratio to \"%s\" with as many keys.", keyedFloor)
	counts := append(r.Values("Keys", "keys"), r.Config("keys"))
	r.head(append([]string{"subject"}, counts...)...)
	for _, s := range r.Values("Keys", "subject") {
		cells := []string{label(s)}
		for _, n := range counts {
			p := r.limitPlace(n, procs, op)
			cells = append(cells, r.ns(p, s)+" ("+r.times(p, s, keyedFloor)+")")
		}
		r.row(cells...)
	}
	r.end()
}

func (r *report) on(procs int) string {
	if procs == 1 {
		return "one core"
	}
	return "all cores"
}

// limitPlace is where the figures of so many keys stand.
func (r *report) limitPlace(keys string, procs int, op string) place {
	if keys == r.Config("keys") {
		return place{"Take", procs, []string{"op=" + op}}
	}
	return place{"Keys", procs, []string{"keys=" + keys, "op=" + op}}
}

func (r *report) limitOneKey() {
	r.text("## One key")
	r.text("ns a decision. Allowed: the limit is never reached. Refused: it has been used up. Paced: one core, the caller's time, at " +
		"95 %% of the limit, so that all is allowed and for each event that comes another leaves the window; no clock is read. " +
		"throttled fails a part of the events when all cores want one key.")
	r.head("subject", "allowed, 1 core", "allowed, all cores", "refused, 1 core", "refused, all cores", "paced, 1 core")
	for _, s := range r.Values("OneKey", "subject") {
		cells := []string{label(s)}
		for _, op := range []string{"op=allowed", "op=refused"} {
			for _, procs := range []int{1, r.cores} {
				cells = append(cells, r.ns(place{"OneKey", procs, []string{op}}, s))
			}
		}
		r.row(append(cells, r.ns(place{"Paced", 1, nil}, s))...)
	}
	r.end()
}

func (r *report) limitBytes() {
	r.text("## Bytes a key")
	r.text("On the heap for a key that was seen once, with %s keys, and for one that has used it up; 11 bytes of each are the key.", r.Config("keys"))
	r.head("algorithm", "limit 60, seen once", "limit 60, used up", "limit 1000, seen once", "limit 1000, used up")
	fill := place{"Take", r.cores, []string{"op=fill"}}
	for _, s := range r.Values("Full", "subject") {
		algorithm, ok := strings.CutSuffix(strings.TrimPrefix(s, "ratelimit,"), ",60-a-minute")
		if !ok {
			continue // the same algorithm's other column
		}
		r.row("**"+algorithm+"**", r.value(fill, s, "B/key"), r.value(place{"Full", r.cores, nil}, s, "B/key"),
			r.value(fill, limitRow(algorithm), "B/key"), r.value(place{"Full", r.cores, nil}, limitRow(algorithm), "B/key"))
	}
	r.end()
}

// A goal is a figure and what it is to be.
type goal struct {
	what     string
	measured float64
	want     float64
	atLeast  bool // else at most
}

func (r *report) limitGoals() {
	r.text("## Against the goals")
	r.head("what", "goal", "measured", "")
	for _, g := range r.goals() {
		if math.IsNaN(g.measured) {
			continue
		}
		sign, met := "<=", g.measured <= g.want
		if g.atLeast {
			sign, met = ">=", g.measured >= g.want
		}
		verdict := "**missed**"
		if met {
			verdict = "met"
		}
		r.row(g.what, sign+" "+digits(g.want), digits(g.measured), verdict)
	}
	r.end()
}

func (r *report) goals() (all []goal) {
	all = append(all, r.peerGoals()...)
	all = append(all, r.ownGoals()...)
	all = append(all, r.sizeGoals()...)
	return append(all, r.growthGoals()...)
}

// peerGoals are how many times faster the default is than the best peers.
func (r *report) peerGoals() (all []goal) {
	for _, peer := range []struct {
		name  string
		times float64
	}{{"httprate.LimitCounter", 1.8}, {"throttled.memstore,map", 2.5}, {"go-limiter.memorystore", 2.5}} {
		for _, procs := range []int{1, r.cores} {
			v := r.over(place{"Take", procs, []string{"op=zipf"}}, peer.name, limitRow("sliding"))
			all = append(all, goal{fmt.Sprintf("sliding, times faster than %s: zipf, %s", peer.name, r.on(procs)), v, peer.times, true})
		}
	}
	return all
}

// ownGoals are the default against the cheapest algorithm that we have.
func (r *report) ownGoals() (all []goal) {
	for _, of := range []struct {
		what string
		p    place
		most float64
	}{
		{"one key, allowed", place{"OneKey", 1, []string{"op=allowed"}}, 1.2},
		{"one key, paced", place{"Paced", 1, nil}, 1.2},
		{"10000 keys, zipf", place{"Keys", 1, []string{"keys=10000", "op=zipf"}}, 1.2},
		{r.Config("keys") + " keys, zipf", place{"Take", 1, []string{"op=zipf"}}, 1.6},
		{r.Config("keys") + " keys, traffic", place{"Traffic", 1, nil}, 1.6},
		{r.Config("keys") + " keys, uniform", place{"Take", 1, []string{"op=uniform"}}, 2},
	} {
		cheapest, name := math.NaN(), ""
		for _, s := range r.Values("Full", "subject") {
			row := strings.Replace(s, ",60-", ",1000-", 1)
			if v, ok := r.Median(of.p.bench, of.p.procs, "ns/op", of.p.of(row)...); ok && !(v >= cheapest) {
				cheapest, name = v, row
			}
		}
		all = append(all, goal{"sliding over " + name + ", the cheapest of ours: " + of.what, r.over(of.p, limitRow("sliding"), name), of.most, false})
	}
	return all
}

func (r *report) sizeGoals() []goal {
	once := func(s, unit string) float64 {
		return r.figure(place{"Take", r.cores, []string{"op=fill"}}, s, unit)
	}
	full := func(s string) float64 { return r.figure(place{"Full", r.cores, nil}, s, "B/key") }
	return []goal{
		{"bytes a key, gcra", once(limitRow("gcra"), "B/key"), 64, false},
		{"bytes a key, two-bucket", once(limitRow("two-bucket"), "B/key"), 64, false},
		{"bytes a key, sliding with its limit of 60 used up", full("ratelimit,sliding,60-a-minute"), 64 + 8*60, false},
		{"bytes a key, sliding with its limit of 1000 used up", full(limitRow("sliding")), 360, false},
		{"ms of a garbage collection, sliding", once(limitRow("sliding"), "gc-ms"), 8, false},
	}
}

// growthGoals are how the ratio to the floor moves from 10 k keys to the most.
func (r *report) growthGoals() (all []goal) {
	for _, op := range []string{"zipf", "uniform"} {
		few := r.over(place{"Keys", 1, []string{"keys=10000", "op=" + op}}, limitRow("sliding"), keyedFloor)
		many := r.over(place{"Take", 1, []string{"op=" + op}}, limitRow("sliding"), keyedFloor)
		all = append(all, goal{"sliding, " + op + ": its ratio to the floor, over that with 10000 keys", many / few, 1.3, false})
	}
	return all
}

// over is a subject's time over another's within a pass, or NaN.
func (r *report) over(p place, subject, other string) float64 {
	v, ok := r.ratio(p, subject, other)
	if !ok {
		return math.NaN()
	}
	return v
}

// figure is a subject's figure in another unit than time, or NaN.
func (r *report) figure(p place, subject, unit string) float64 {
	v, ok := r.Median(p.bench, p.procs, unit, p.of(subject)...)
	if !ok {
		return math.NaN()
	}
	return v
}
