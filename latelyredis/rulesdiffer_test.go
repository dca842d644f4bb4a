package latelyredis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// differing has two nodes with different limits for one rule decide about one key, and returns the most that both have allowed
// in any window.
func differing(t *testing.T, rng *rand.Rand, as [2]ratelimit.Algorithm, n [2]uint64, config latelyredis.Config, change ...func(*ratelimit.Rule)) (most int) {
	now := clockAt(time.Now().Truncate(24 * time.Hour))
	var nodes [2]*ratelimit.Limiter
	for i := range nodes {
		rule := limited("limit", match.MustKey("path"), as[i], n[i])
		for _, c := range change {
			c(&rule)
		}
		nodes[i] = nodeAt(t, set(t, rule), config, now)
	}
	span := time.Minute.Microseconds()
	if as[0] == ratelimit.Calendar {
		span = 24 * time.Hour.Microseconds()
	}
	var allowed []int64
	top := int64(max(n[0], n[1]))
	for step := range 6 * int(top) { // some three times as many as a window allows, in bursts
		switch rng.Int64N(top) {
		case 0:
			now.Add(rng.Int64N(span / 20))
		default:
			now.Add(rng.Int64N(span / (2 * top)))
		}
		node := nodes[rng.IntN(2)]
		if step%50 < 25 { // each for a while alone, too
			node = nodes[step/50%2]
		}
		d := takePath(node, "/")
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		if d.Allowed {
			allowed = append(allowed, now.Load())
		}
		first := 0
		for first < len(allowed) && allowed[first] <= now.Load()-span {
			first++
		}
		allowed = allowed[first:]
		most = max(most, len(allowed))
	}
	return most
}

// drawn returns n of all in short tests, another choice with each seed, and all of them otherwise.
func drawn[T any](rng *rand.Rand, n int, all []T) []T {
	if testing.Short() {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:n]
	}
	return all
}

// allowedOf takes n times, and returns how often it was allowed.
func allowedOf(t testing.TB, l *ratelimit.Limiter, n int) (allowed int) {
	t.Helper()
	for range n {
		d := takePath(l, "/")
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		if d.Allowed {
			allowed++
		}
	}
	return allowed
}

// TestDifferentRules has two servers enforce the same rule with different N, as during a rollout of rules: both together
// allow what the larger one does alone.
func TestDifferentRules(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	rng := randtest.New(t)
	for i := range limit.Algorithms() {
		a := ratelimit.Algorithm(i)
		if a == ratelimit.InFlight {
			continue // which counts events in flight
		}
		for _, n := range drawn(rng, 3, [][2]uint64{{20, 17}, {100, 30}, {150, 140}, {300, 100}, {129, 128}, {300, 1}, {300, 0}}) {
			limit := limited("limit", match.MustKey("path"), a, n[0]).Limits[0]
			want := int(limit.MaxAllowed(a))
			for range rounds {
				if got := differing(t, rng, [2]ratelimit.Algorithm{a, a}, n, prefixed()); got > want {
					t.Errorf("%v: %d and %d: %d allowed in a window, want at most %d", a, n[0], n[1], got, want)
				}
			}
		}
	}
}

// TestWritesByDifferentRules is TestDifferentRules for rules under which a node writes a record that holds more than its
// own limit can: refused events count, or a ban counts them.
func TestWritesByDifferentRules(t *testing.T) {
	t.Parallel()
	rng := randtest.New(t)
	ban := func(of ratelimit.Cause) func(*ratelimit.Rule) {
		return func(r *ratelimit.Rule) {
			r.Ban = &ratelimit.Ban{After: 60_000, Of: of, Span: time.Minute, For: time.Minute}
		}
	}
	for name, change := range map[string]func(*ratelimit.Rule){
		"refused events count": func(r *ratelimit.Rule) { r.CountRefused = true },
		"a ban of refusals":    ban(ratelimit.Refusals),
		"a ban of hits":        ban(ratelimit.Hits),
	} {
		other := ratelimit.Algorithm(rng.IntN(len(limit.Algorithms())))
		for i := range limit.Algorithms() {
			a := ratelimit.Algorithm(i)
			if a == ratelimit.InFlight || testing.Short() && a != ratelimit.Sliding && a != other {
				continue // in flight counts events that have not ended
			}
			for _, n := range [][2]uint64{{300, 100}, {129, 128}, {300, 0}} {
				want := int(limited("limit", match.MustKey("path"), a, n[0]).Limits[0].MaxAllowed(a))
				if got := differing(t, rng, [2]ratelimit.Algorithm{a, a}, n, prefixed(), change); got > want {
					t.Errorf("%s: %v: %d and %d: %d allowed in a window, want at most %d", name, a, n[0], n[1], got, want)
				}
			}
		}
	}
}

// TestDifferentAlgorithms is TestDifferentRules for a sliding limit of 300 and a lower one of another algorithm. Drained
// events of a bucket are not carried back, so with a bucket its own worst case may be added.
func TestDifferentAlgorithms(t *testing.T) {
	t.Parallel()
	rng := randtest.New(t)
	for i := range limit.Algorithms() {
		a := ratelimit.Algorithm(i)
		if a == ratelimit.InFlight || a == ratelimit.Calendar {
			continue // which count events in flight, or in days
		}
		for _, n := range drawn(rng, 2, []uint64{1, 30, 100, 150}) {
			want := 300
			if a == ratelimit.GCRA || a == ratelimit.LeakyBucket {
				want += int(limited("limit", match.MustKey("path"), a, n).Limits[0].MaxAllowed(a))
			}
			if got := differing(t, rng, [2]ratelimit.Algorithm{ratelimit.Sliding, a}, [2]uint64{300, n}, prefixed()); got > want {
				t.Errorf("%v of %d: %d allowed in a window, want at most %d", a, n, got, want)
			}
		}
	}
}

// TestCorrectionsByDifferentRules has a node with a lower limit give back, ban and unban a key: counts that only the larger
// limit of the other node can hold stay in the record.
func TestCorrectionsByDifferentRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		correct func(l *ratelimit.Limiter, r *ratelimit.RuleLimiter) error
		back    int
	}{
		{"refund", func(_ *ratelimit.Limiter, r *ratelimit.RuleLimiter) error { _, err := r.Refund(1, "/"); return err }, 1},
		{"ban and unban", func(l *ratelimit.Limiter, _ *ratelimit.RuleLimiter) error {
			if err := l.Bans().Add(ratelimit.BanRecord{Rule: "limit", Key: []string{"/"}, Until: time.Now().Add(time.Hour)}); err != nil {
				return err
			}
			_, err := l.Bans().Remove("limit", "/")
			return err
		}, 0},
	} {
		for _, n := range [][2]uint64{{222, 15}, {100, 15}, {300, 140}} {
			t.Run(fmt.Sprint(c.name, n), func(t *testing.T) {
				config, now := prefixed(), clockAt(time.Now())
				var nodes [2]*ratelimit.Limiter
				for i := range nodes {
					rule := limited("limit", match.MustKey("path"), ratelimit.Sliding, n[i])
					rule.Ban = &ratelimit.Ban{After: 1000, Of: ratelimit.Refusals, Span: time.Minute, For: time.Minute}
					if c.name == "refund" {
						rule.Ban = nil
					}
					nodes[i] = nodeAt(t, set(t, rule), config, now)
				}
				if got := allowedOf(t, nodes[0], 2*int(n[0])); got != int(n[0]) {
					t.Fatalf("%d of %d allowed", got, n[0])
				}
				now.Add(1000)
				must.Do(t, c.correct(nodes[1], ruleOf(t, nodes[1])))
				now.Add(1_000_000)
				if got := allowedOf(t, nodes[0], 2*int(n[0])); got > c.back {
					t.Errorf("%d more allowed, want at most %d", got, c.back)
				}
			})
		}
	}
}

// TestCalendarsByDifferentRules has a node charge a key whose record counts more than its own limits can hold, in a minute
// without counts: it does not have the minutes of the other node's calendar, and its counts end a minute later.
func TestCalendarsByDifferentRules(t *testing.T) {
	config, now := prefixed(), clockAt(time.Date(2026, 11, 23, 12, 0, 30, 0, time.UTC))
	open := func(a ratelimit.Algorithm, limits ...ratelimit.Limit) *ratelimit.Limiter {
		return nodeAt(t, set(t, ratelimit.Rule{Name: "limit", Key: match.MustKey("path"), Algorithm: a, Limits: limits}), config, now)
	}
	const perMinute = 5
	higher := open(ratelimit.Calendar, ratelimit.Limit{N: 1000, Per: ratelimit.PerDay}, ratelimit.Limit{N: perMinute, Per: ratelimit.PerMinute})
	lower := open(ratelimit.Sliding, ratelimit.Limit{N: 10, Span: 24 * time.Hour})
	take := func() int {
		allowed := allowedOf(t, higher, 2*perMinute)
		now.Add(time.Minute.Microseconds())
		return allowed
	}
	for range 4 {
		if got := take(); got != perMinute {
			t.Fatalf("%d allowed in a minute, want %d", got, perMinute)
		}
	}
	must.Do(t, ruleOf(t, lower).Charge(1, "/"))
	now.Add(time.Minute.Microseconds())
	for range 3 {
		if got := take(); got != perMinute {
			t.Errorf("%d allowed in a minute after a charge by the lower limit, want %d", got, perMinute)
		}
	}
}

// TestZoneChange moves the beginning of a day: what is used counts until the day ends in the new zone, and no day allows
// more than N.
func TestZoneChange(t *testing.T) {
	config, now := prefixed(), clockAt(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	const n = 5
	take := func(zone *time.Location) (allowed int) {
		rules := set(t, ratelimit.Rule{
			Name: "limit", Key: match.MustKey("path"), Algorithm: ratelimit.Calendar, Zone: zone,
			Limits: []ratelimit.Limit{{N: n, Per: ratelimit.PerDay}},
		})
		return int(takeAll(t, storeAt(t, redis(t).client(t), rules, config, now), rules, 2*n))
	}
	east := time.FixedZone("east", 5*3600+1800)
	if got := take(east); got != n {
		t.Fatalf("%d allowed, want %d", got, n)
	}
	for _, c := range []struct {
		hour, minute, want int
		why                string
	}{
		{12, 1, 0, "at once"},
		{18, 31, 0, "when the day has ended in the zone before"},
		{24, 0, n, "when it has ended in the new one"},
	} {
		now.Store(time.Date(2026, 11, 23, c.hour, c.minute, 0, 0, time.UTC).UnixMicro())
		if got := take(nil); got != c.want {
			t.Errorf("%s: %d allowed, want %d", c.why, got, c.want)
		}
	}
}

// TestMergeByDifferentRules has a node with the lower limit send what it has allowed after one with the higher limit has
// filled it.
func TestMergeByDifferentRules(t *testing.T) {
	const high, low, allowed = 300, 100, 5
	config, now := batched(), clockAt(time.Now())
	open := func(n uint64) (*latelyredis.Store, *ratelimit.Set) {
		config.Batched = n == low
		rules := set(t, limited("limit", match.MustKey("path"), ratelimit.Sliding, n))
		store := knowing(t, redis(t).client(t), rules, config, now, now)
		listed(t, store)
		return store, rules
	}
	request := func(rules *ratelimit.Set) *latelyredis.Request { return one(rules, about(0, "k")) }
	lower, lowRules := open(low)
	higher, highRules := open(high)
	if lower.Decide(t.Context(), []*latelyredis.Request{request(lowRules)}); !lower.DecideKnown(request(lowRules)) {
		t.Fatal("an event is not allowed without a round trip")
	}
	for range allowed - 1 {
		lower.DecideKnown(request(lowRules))
	}
	if n := takeAll(t, higher, highRules, 2*high); n != high-1 {
		t.Fatalf("%d of %d allowed", n, high)
	}
	if !lower.Merge(t.Context()) {
		t.Fatal("the merge was not answered")
	}
	now.Add(1_000_000)
	if n := takeAll(t, higher, highRules, 1); n != 0 {
		t.Errorf("%d more allowed after a merge by the node with %d", n, low)
	}
}
