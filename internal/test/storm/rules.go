//go:build linux

package storm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Version is the limit that one version of the rules file gives to a rule.
type Version struct {
	Algorithm string
	N, Burst  uint64
	Span      time.Duration
}

// Most returns how much a limit of v allows at worst in one span, by docs/algorithms.md.
func (v Version) Most() uint64 {
	switch v.Algorithm {
	case "two-bucket", "fixed":
		return 2*v.N - 1
	case "calendar":
		return 2 * v.N
	case "gcra", "leaky-bucket":
		return v.N + v.Burst - 1
	}
	return v.N
}

// drains reports whether the algorithm of v keeps less than all that it allowed in the last span.
func (v Version) drains() bool {
	return v.Algorithm == "gcra" || v.Algorithm == "leaky-bucket" || v.Algorithm == "fixed" || v.Algorithm == "calendar"
}

// blurs reports whether the algorithm of v allows more than N of what it has stored.
func (v Version) blurs() bool { return v.Algorithm == "two-bucket" }

// over returns how much the limit allows at worst in the shortest span of some versions that are in force one after the
// other, by the table in docs/dev/proofs.md. stated is false if several servers use them at the same time, and some of them
// lack what the others allow.
func (l *Limit) over(versions []int, servers int) (most uint64, stated bool) {
	was := l.Versions[versions[0]]
	before, run := uint64(0), was.Most() // by algorithms that have lost it, and since then
	largest, blurred := was.N, uint64(0)
	stated = true
	for _, i := range versions {
		v := l.Versions[i]
		if largest = max(largest, v.N); v.blurs() || was.blurs() {
			blurred = max(blurred, largest)
		}
		switch {
		case v == was:
			continue
		case was.drains():
			before, run = before+run, v.Most()
		case v.Algorithm == "fixed" || v.Algorithm == "calendar":
			before, run = before+max(run, v.N), v.N
		default:
			run = max(run, v.Most(), largest+blurred)
		}
		stated = stated && (servers == 1 || !was.drains() && !v.drains())
		was = v
	}
	return before + run, stated
}

// share returns v with the part of its limit that one of n servers has while the store is unavailable.
func (v Version) share(n uint64) Version {
	v.N, v.Burst = max(1, v.N/n), max(1, v.Burst/n)
	return v
}

// text returns the limit as the rules file has it.
func (v Version) text() string {
	switch v.Algorithm {
	case "in-flight":
		return fmt.Sprintf("%d at once for %v", v.N, v.Span)
	case "calendar":
		return fmt.Sprintf("%d per day", v.N)
	case "gcra", "leaky-bucket":
		return fmt.Sprintf("%d per %v burst %d", v.N, duration(v.Span), v.Burst)
	}
	return fmt.Sprintf("%d per %v", v.N, duration(v.Span))
}

// duration returns d as the rules file has it.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprint(int(d/time.Second), "s")
	}
	return fmt.Sprint(d.Milliseconds(), "ms")
}

// A Limit is a limit rule. Its key is one field, and is the same in all versions of the file.
type Limit struct {
	Name, Key string
	Path      string // that it judges; "" for all
	OnFailure string
	Counting  bool // count_refused
	Versions  []Version
}

// Matches returns the key under which the limit judges a call, if it does.
func (l *Limit) Matches(c *Call) (key string, ok bool) {
	if c.Rule != "" {
		return c.Key, c.Rule == l.Name
	}
	if l.Path != "" && l.Path != c.Path {
		return "", false
	}
	key = c.Client
	if l.Key == "user" {
		key = c.User
	}
	return key, key != ""
}

// The rules beside the limits, which are the same in all versions.
const (
	byHand = "by-hand" // has bans by hand only
	knock  = "knock"   // begins a ban at the event after knocks
	spare  = "spare"   // for calls whose effect is not judged

	reported     = "spare-reported" // for outcomes by id
	mostReported = 1000
	knocks       = 3
)

// knockPath is the path of the events that the rule knock counts.
const knockPath = "/knock"

var allAlgorithms = []string{"sliding", "exact", "fixed", "gcra", "two-bucket", "leaky-bucket"}

// drawLimits draws the limits of a rules file, up to a number and one of in-flight, and their versions.
func drawLimits(r *rand.Rand, spans []time.Duration, most int) (all []Limit) {
	// Few algorithms: the bound of one must not hide a fault of another.
	algorithms := []string{pick(r, allAlgorithms...), "exact", "sliding"}
	for i := range 1 + r.IntN(most) {
		l := Limit{Name: fmt.Sprint("limit", i), Key: "client", OnFailure: pick(r, "local", "local", "local", "closed"), Counting: r.IntN(8) == 0}
		if i > 0 && r.IntN(3) == 0 {
			l.Key = "user"
		}
		if i > 0 && r.IntN(2) == 0 {
			l.Path = pick(r, "/a", "/b")
		}
		first := drawVersion(r, algorithms, spans)
		for range versions {
			l.Versions = append(l.Versions, first)
			first = first.changed(r, algorithms)
		}
		all = append(all, l)
	}
	if most > 2 && r.IntN(2) == 0 {
		v := Version{Algorithm: "in-flight", N: uint64(2 + r.IntN(10)), Span: time.Minute}
		l := Limit{Name: "places", Key: "client", Path: "/files", OnFailure: "local"}
		for range versions {
			l.Versions = append(l.Versions, v)
		}
		all = append(all, l)
	}
	return all
}

// drawVersion draws the first version of a limit: with a short span, so that windows pass, or a long one,
// so that all events are in one window.
func drawVersion(r *rand.Rand, algorithms []string, spans []time.Duration) Version {
	v := Version{
		Algorithm: pick(r, algorithms...),
		N:         uint64(4 + r.IntN(30)),
		Span:      pick(r, spans...),
	}
	if r.IntN(8) == 0 {
		v.N = uint64(130 + r.IntN(100)) // sliding counts in slots
	}
	v.Burst = uint64(1 + r.IntN(int(v.N)))
	return v
}

// changed draws the next version of a limit.
func (v Version) changed(r *rand.Rand, algorithms []string) Version {
	switch r.IntN(6) {
	case 0:
		v.N = uint64(4 + r.IntN(30))
		v.Burst = min(v.Burst, v.N)
	case 1, 2, 3:
		for was := v.Algorithm; v.Algorithm == was; {
			v.Algorithm = pick(r, algorithms...)
		}
	case 4:
		v.Span *= 2
	}
	return v
}

// rulesFile returns the text of a version of the rules file.
func (c *Config) rulesFile(version int) string {
	var b strings.Builder
	b.WriteString("version: 1\ncounters:\n  lines: {key: path, spans: [24h]}\n  spare-counter: {key: client, spans: [1s, 1m]}\nlimits:\n")
	for _, l := range c.Limits {
		v := l.Versions[version]
		fmt.Fprintf(&b, "  - {name: %s, key: %s, limit: %s, algorithm: %s, on_store_failure: %s", l.Name, l.Key, v.text(), v.Algorithm, l.OnFailure)
		if l.Path != "" {
			fmt.Fprintf(&b, ", when: {path: %s}", l.Path)
		}
		if l.Counting {
			b.WriteString(", count_refused: true")
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "  - {name: %s, key: agent, limit: 5 per 1s}\n", spare)
	fmt.Fprintf(&b, "  - {name: spare-answers, key: agent, when: {status: 401}, limit: 5 per 1s}\n")
	fmt.Fprintf(&b, "  - {name: %s, key: agent, when: {path: /spare, status: 401}, limit: %d per 1h}\n", reported, mostReported)
	fmt.Fprintf(&b, "  - {name: spare-places, key: agent, limit: 5 at once for 1s, algorithm: in-flight}\n")
	fmt.Fprintf(&b, "bans:\n  - {name: %s, key: client, when: {path: /by-hand}, after: 60000 hits in 1m, for: 1h}\n", byHand)
	fmt.Fprintf(&b, "  - {name: %s, key: client, when: {path: %s}, after: %d hits in 1m, for: 1h}\n", knock, knockPath, knocks)
	fmt.Fprintf(&b, "  - {name: spare-ban, key: agent, after: 60000 hits in 1m, for: 1h}\n")
	if !c.Store {
		fmt.Fprintf(&b, "  - {name: spare-distinct, key: agent, after: 3 distinct path in 1m, for: 1s}\n")
	}
	fmt.Fprintf(&b, "hot:\n  - {name: page, key: path, threshold: 20 per 1s, hold: 1s, cache: {ttl: 1s}}\n")
	return b.String()
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
