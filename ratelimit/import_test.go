package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

func second(n int64) time.Time { return time.Unix(n, 0) }

// mustMemory returns an empty store with a Limiter over it.
func mustMemory(t testing.TB, s *ratelimit.Set, c ratelimit.Config) (*ratelimit.Memory, *ratelimit.Limiter) {
	t.Helper()
	m := must.Get(ratelimit.NewMemory(s, c))(t)
	return m, ratelimit.Over(s, m)
}

// exported returns copies of the chunks of m.
func exported(m *ratelimit.Memory, now time.Time) (chunks [][]byte) {
	for chunk := range m.ExportAt(now) {
		chunks = append(chunks, append([]byte(nil), chunk...))
	}
	return chunks
}

// mustImport imports the chunks.
func mustImport(t testing.TB, m *ratelimit.Memory, now time.Time, chunks [][]byte) (all window.Imported) {
	t.Helper()
	for i, chunk := range chunks {
		did, err := m.ImportAt(now, chunk)
		if err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
		all.Add(did)
	}
	return all
}

// A restarted judge is a limiter that now and then passes its counts to another
// one, as over a restart. Each decision must be the same as without.
type restarted struct {
	t      testing.TB
	set    *ratelimit.Set
	config ratelimit.Config
	memory *ratelimit.Memory // of the first
	twins
	every, left int // decisions until the next restart
	restarts    int
	keys, bans  int
	fault       func(chunks [][]byte) [][]byte // nil, or the import of a control
}

func newRestarted(t testing.TB, set *ratelimit.Set, c ratelimit.Config, every int) *restarted {
	j := &restarted{t: t, set: set, config: c, every: every, left: every}
	var a *ratelimit.Limiter
	j.memory, a = mustMemory(t, set, c)
	j.a, j.b = &limiterJudge{Limiter: a}, &limiterJudge{Limiter: mustLimiter(t, set, c)}
	return j
}

func (j *restarted) turn(now int64) {
	if j.left--; j.left > 0 {
		return
	}
	j.left = j.every
	chunks := exported(j.memory, time.Unix(0, now))
	if j.fault != nil {
		chunks = j.fault(chunks)
	}
	m, b := mustMemory(j.t, j.set, j.config)
	did := mustImport(j.t, m, time.Unix(0, now), chunks)
	if did.Refused+did.Kept+did.Unknown > 0 {
		j.t.Fatalf("import into an empty store: %+v", did)
	}
	j.b = &limiterJudge{Limiter: b, turn: j.a.(*limiterJudge).turn}
	j.keys, j.bans = j.keys+did.Keys, j.bans+did.Bans
	j.restarts++
}

func (j *restarted) take(t int64, key string, cost uint64) ratelimit.Decision {
	d := j.twins.take(t, key, cost)
	j.turn(t)
	return d
}

// reserve is twins.reserve; neither limiter gives back what was reserved before a restart.
func (j *restarted) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	d, cancel := j.twins.reserve(t, key, cost)
	restarts := j.restarts
	return d, func(t int64) {
		if restarts == j.restarts {
			cancel(t)
		}
	}
}

// restarts attacks a limiter under a rule of any kind, or the rule of f, and one that is restarted every so often. It
// returns how they differ, if they do.
func restarts(t testing.TB, rnd *rand.Rand, f *foe, events int, fault func([][]byte) [][]byte) (o outcome, j *restarted) {
	var a *attack
	var c ratelimit.Config
	var rules []ratelimit.Rule
	if f != nil {
		a, c = f.attack(t, rnd)
		rules = a.rules
	} else {
		r := bannedRule(t, rnd)
		attacked := r
		if r.Limits == nil {
			attacked = limitRule(t, "r", per(max(r.Ban.After, 1), r.Ban.Span))
		}
		a, c = newAttack(0, attacked), ratelimit.Config{Budget: 32 << 20}
		rules = []ratelimit.Rule{r, bannedRule(t, rnd)}
		rules[1].Name = "other"
		if r.Ban != nil && rnd.IntN(2) == 0 {
			r.Ban.Jitter = rnd.Float64()
		}
	}
	a.claims, a.held, a.needed, a.turns = a.claims[:1], 0, false, nil // other tests check what is allowed
	a.setBack = false
	c.Budget, c.JitterSeed, c.Bans = 32<<20, 7, 10_000
	if rnd.IntN(4) == 0 {
		c.Budget = -1
	}
	j = newRestarted(t, mustSet(t, rules...), c, 1+rnd.IntN(events/3))
	j.fault = fault
	o = a.run(rnd, j, events)
	if j.differs != "" {
		j.differs = fmt.Sprintf("after %d restarts, each %d decisions: %s\nrules %+v\nmemory %+v", j.restarts, j.every, j.differs, rules, c)
	}
	return o, j
}

// TestConcurrentImportContinues attacks two limiters, of which one is restarted over and over. Every decision is the same
// in all fields: under all algorithms, one limit or several, large costs, bans that grow, reservations.
func TestConcurrentImportContinues(t *testing.T) {
	rounds, events := 25, 600
	switch {
	case longForm():
		rounds, events = 2000, 3000
	case testing.Short():
		rounds, events = 4, 300
	}
	for i := range len(foes) + 1 {
		var f *foe
		name := "with bans"
		if i < len(foes) {
			f, name = &foes[i], foes[i].name
		}
		t.Run(name, func(t *testing.T) {
			rnd := randtest.New(t)
			n, all, bans, restarted := rounds, outcome{}, 0, 0
			if f == nil {
				n *= 4
			}
			toothless := func() bool {
				return all.refused < all.arrivals/50 || all.allowed < all.arrivals/50 || f == nil && bans == 0
			}
			// A few rounds may draw rules that refuse next to nothing: these draw more.
			for i := 0; i < n || toothless() && i < 10*n; i++ {
				o, j := restarts(t, rnd, f, events, nil)
				if j.differs != "" {
					t.Fatal(j.differs)
				}
				all.add(&o)
				bans, restarted = bans+j.bans, restarted+j.restarts
			}
			if toothless() {
				t.Errorf("%d allowed, %d refused, %d bans: the test has no teeth", all.allowed, all.refused, bans)
			}
			t.Logf("%d decisions, %d restarts, %d bans restored: all alike", all.arrivals, restarted, bans)
		})
	}
}

// TestConcurrentFaultyImportsAreCaught does so with restarts that lose or change something: a chunk, or one byte of each.
func TestConcurrentFaultyImportsAreCaught(t *testing.T) {
	rnd := randtest.New(t)
	faults := map[string]func(chunks [][]byte) [][]byte{
		"the counts are lost": func(chunks [][]byte) [][]byte { return nil },
		"a byte is changed": func(chunks [][]byte) [][]byte {
			for i, chunk := range chunks {
				again := append([]byte(nil), chunk...)
				m, _ := mustMemory(t, mustSet(t, limitRule(t, "unknown", per(1, time.Second))), ratelimit.Config{})
				again[len(again)-5] ^= 1 // before the checksum
				again = sealed(again)
				if _, err := m.ImportAt(time.Unix(0, 0), again); err == nil {
					chunks[i] = again
				}
			}
			return chunks
		},
	}
	for name, fault := range faults {
		caught := 0
		for range 20 {
			if _, j := restarts(t, rnd, &foes[rnd.IntN(len(foes))], 300, fault); j.differs != "" {
				caught++
			}
		}
		if caught < 5 {
			t.Errorf("%s: of 20 nobody notices %d", name, 20-caught)
		}
	}
}

// TestImportTwice imports into a store that has counts already.
func TestImportTwice(t *testing.T) {
	r := limitRule(t, "r", per(3, time.Minute), per(100, time.Hour))
	r.Ban = &ratelimit.Ban{After: 5, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
	set := mustSet(t, r)
	a, la := mustMemory(t, set, ratelimit.Config{})
	for i := range 4 {
		for k := range 100 + 4*i {
			takeKeyN(la, at(int64(i)), fmt.Sprint(k), 1)
		}
	}
	for range 10 {
		takeKeyN(la, at(4), "banned", 1)
	}
	chunks := exported(a, at(5))
	b, lb := mustMemory(t, set, ratelimit.Config{})
	first, second := mustImport(t, b, at(5), chunks), mustImport(t, b, at(5), chunks)
	if first.Keys != 112+1 || first.Bans != 1 || first.Kept != 0 {
		t.Errorf("first import: %+v", first)
	}
	if second.Kept != first.Keys+first.Bans || second.Keys+second.Bans != 0 {
		t.Errorf("second import: %+v", second)
	}
	for k := range 112 {
		if da, db := takeKeyN(la, at(6), fmt.Sprint(k), 1), takeKeyN(lb, at(6), fmt.Sprint(k), 1); !sameDecision(da, db) {
			t.Fatalf("key %d: %+v and %+v", k, da, db)
		}
	}
}

// TestImportAfterClockWasSetBack fills every kind of limit, and imports an hour before that. The counts count at the
// earlier time: the key is as full as it was, and waits no longer than it would have.
func TestImportAfterClockWasSetBack(t *testing.T) {
	const now = int64(1_700_000_000e9)
	for _, f := range foes {
		l := per(f.high, time.Minute)
		if f.algorithm == ratelimit.Calendar {
			l = ratelimit.Limit{N: f.high, Per: ratelimit.PerMinute}
		}
		r := limitRule(t, "r", l)
		r.Algorithm = f.algorithm
		set := mustSet(t, r)
		a, la := mustMemory(t, set, ratelimit.Config{})
		for i := range int64(20) {
			takeKeyN(la, time.Unix(0, now+i*100e6), "k", f.high/20)
		}
		takeKeyN(la, time.Unix(0, now+2e9), "k", peekKeyN(la, time.Unix(0, now+2e9), "k", 1).Remaining)
		want := peekKeyN(la, time.Unix(0, now+2e9), "k", 1)
		back := time.Unix(0, now-3600e9)
		b, lb := mustMemory(t, set, ratelimit.Config{})
		mustImport(t, b, back, exported(a, time.Unix(0, now+2e9)))
		got := peekKeyN(lb, back, "k", 1)
		if got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.RetryAfter > 62*time.Second || got.ResetAfter > 2*time.Minute {
			t.Errorf("%s: an hour before it is %+v, and was %+v", f.name, got, want)
		}
		if d := peekKeyN(lb, back.Add(122*time.Second), "k", f.high); !d.Allowed {
			t.Errorf("%s: two minutes later still %+v", f.name, d)
		}
	}
}

// TestImportBansAfterClockWasSetBack checks that bans keep their remaining time,
// and that ended bans do not hold again.
func TestImportBansAfterClockWasSetBack(t *testing.T) {
	r := ban(t, "r", ratelimit.Ban{After: 1, Span: time.Minute, For: time.Hour, Factor: 2})
	set := mustSet(t, r)
	a, la := mustMemory(t, set, ratelimit.Config{})
	for range 2 {
		takeKeyN(la, second(0), "held", 1)
		takeKeyN(la, second(-5000), "over", 1)
	}
	must.Do(t, a.Ban(context.Background(), ratelimit.BanRecord{Rule: "r", Key: []string{"by hand"}, Since: second(0), Until: second(7200), Reason: "spam", Source: "ada"}))
	b, lb := mustMemory(t, set, ratelimit.Config{})
	did := mustImport(t, b, second(-10_000), exported(a, second(600)))
	if did.Bans != 3 {
		t.Errorf("of three bans: %+v", did)
	}
	if d := peekKeyN(lb, second(-10_000), "held", 1); !d.BannedUntil.Equal(second(-10_000 + 3000)) {
		t.Errorf("a ban with 50 minutes left: %+v", d)
	}
	if d := peekKeyN(lb, second(-10_000), "by hand", 1); !d.BannedUntil.Equal(second(-10_000 + 6600)) {
		t.Errorf("a ban with 110 minutes left: %+v", d)
	}
	for range 2 {
		takeKeyN(lb, second(-10_000), "over", 1)
	}
	if d := peekKeyN(lb, second(-10_000), "over", 1); !d.BannedUntil.Equal(second(-10_000 + 7200)) {
		t.Errorf("second ban of a key: %+v", d)
	}
	for rec, err := range b.BanRecords() {
		if err != nil || rec.Key[0] == "by hand" && (rec.Reason != "spam" || rec.Source != "ada") {
			t.Errorf("%+v, %v", rec, err)
		}
	}
}

// TestImportFollowsTraffic restarts rules whose limit follows their traffic.
func TestImportFollowsTraffic(t *testing.T) {
	rnd := randtest.New(t)
	for _, smooth := range []time.Duration{0, 30 * time.Second} {
		r := limitRule(t, "r", per(50, time.Second))
		r.Adapt = &ratelimit.Adapt{
			Span: 5 * time.Second, Smooth: smooth, Above: 3,
			Steps: []ratelimit.AdaptStep{{Below: 20, Limit: 40}, {Below: 60, Limit: 20}, {Below: 100, Limit: 9}},
		}
		j := newRestarted(t, mustSet(t, r), ratelimit.Config{}, 97)
		limits := make(map[uint64]bool)
		now := int64(1_700_000_000e9)
		for i := range 6000 {
			now += rnd.Int64N(int64(5e6 * (1 + 10*float64(i/1500%2) + 3*float64(i/700%3))))
			limits[j.take(now, fmt.Sprint(rnd.IntN(3)), 1).Limit] = true
			if j.differs != "" {
				t.Fatalf("smooth %v: %s", smooth, j.differs)
			}
		}
		if len(limits) < 3 {
			t.Errorf("smooth %v: limits were %v: the test has no teeth", smooth, limits)
		}
	}
}

// TestExportCutsLargeKeys exports a key with several logs of tens of thousands of
// times: each chunk is at most a mebibyte, and nothing is lost.
func TestExportCutsLargeKeys(t *testing.T) {
	rnd := randtest.New(t)
	r := limitRule(t, "r", per(limit.MaxLog, time.Hour), per(60_000, 7*time.Hour), per(50_000, 8*time.Hour))
	r.Algorithm = ratelimit.Exact
	set := mustSet(t, r)
	a, la := mustMemory(t, set, ratelimit.Config{})
	now := int64(1_700_000_000e9)
	for range 50_000 {
		now += rnd.Int64N(300e6)
		takeKeyN(la, time.Unix(0, now), "k", 1)
	}
	takeKeyN(la, time.Unix(0, now), "small", 1)
	chunks := exported(a, time.Unix(0, now))
	parts := 0
	for _, chunk := range chunks {
		if len(chunk) > 1<<20 {
			t.Errorf("a chunk has %d bytes", len(chunk))
		}
		if len(chunk) > 50_000 {
			parts++
		}
	}
	if parts != 3 {
		t.Errorf("%d parts: the test has no teeth", parts)
	}
	b, lb := mustMemory(t, set, ratelimit.Config{})
	mustImport(t, b, time.Unix(0, now), chunks)
	tw := &twins{a: &limiterJudge{Limiter: la}, b: &limiterJudge{Limiter: lb}}
	for range 1000 {
		now += rnd.Int64N(60e9)
		if tw.take(now, "k", 1+rnd.Uint64N(100)); tw.differs != "" {
			t.Fatal(tw.differs)
		}
	}
}

// TestImportKeepsToTheBudget imports more than there is memory for: the budget holds, and a key without memory counts as
// full, not as new.
func TestImportKeepsToTheBudget(t *testing.T) {
	set := mustSet(t, limitRule(t, "r", per(2, time.Hour)))
	a, la := mustMemory(t, set, ratelimit.Config{Budget: 64 << 20})
	n := 100_000
	if testing.Short() {
		n = 30_000
	}
	for i := range n {
		takeKeyN(la, second(0), fmt.Sprint(i), 2)
	}
	b, lb := mustMemory(t, set, ratelimit.Config{Budget: 2 << 20})
	did := mustImport(t, b, second(1), exported(a, second(1)))
	if s := lb.Stats(); s.Bytes > s.Budget {
		t.Errorf("%d bytes of %d", s.Bytes, s.Budget)
	}
	if did.Refused < n/4 || did.Refused+did.Keys != n {
		t.Errorf("%+v: the test has no teeth", did)
	}
	for i := range n {
		if d := peekKeyN(lb, second(1), fmt.Sprint(i), 1); d.Allowed {
			t.Fatalf("key %d, which was full: %+v", i, d)
		}
	}
}
