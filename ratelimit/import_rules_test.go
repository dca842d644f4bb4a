package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// TestImportUnderOtherRules imports counts under rules that have changed: what still fits is carried as by an Update. There
// is no budget, so that events outside of all windows are carried by both: a shorter window than before does not have them.
func TestImportUnderOtherRules(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for range rounds {
		was, is := bannedRule(t, rnd), bannedRule(t, rnd)
		for is.Algorithm != was.Algorithm { // see TestImportUnderAnotherAlgorithm
			is = bannedRule(t, rnd)
		}
		set, other := mustSet(t, was), mustSet(t, is)
		a, la := mustMemory(t, set, ratelimit.Config{Budget: -1})
		now := int64(1_700_000_000e9)
		key := func() string { return attackKeys[rnd.IntN(8)] }
		for range 200 {
			now += rnd.Int64N(1 << rnd.IntN(36))
			takeKeyN(la, time.Unix(0, now), key(), rnd.Uint64N(4))
		}
		b, lb := mustMemory(t, other, ratelimit.Config{Budget: -1})
		mustImport(t, b, time.Unix(0, now), exported(a, time.Unix(0, now)))
		must.Do(t, la.Update(other))
		tw := &twins{a: &limiterJudge{Limiter: la}, b: &limiterJudge{Limiter: lb}}
		for range 200 {
			now += rnd.Int64N(1 << rnd.IntN(36))
			d := tw.take(now, key(), rnd.Uint64N(4))
			if d.BannedUntil.IsZero() && tw.differs != "" {
				t.Fatalf("%s\nwas %+v\nis %+v", tw.differs, was, is)
			}
			tw.differs = "" // bans of before may be shorter, see TestImportCapsBans
		}
	}
}

// TestImportUnderAnotherAlgorithm imports counts of an algorithm under another: they are
// carried as by an Update, and so is what counts toward the ban.
func TestImportUnderAnotherAlgorithm(t *testing.T) {
	was := limitRule(t, "r", per(5, time.Hour))
	was.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
	is := was
	is.Algorithm, is.Limits = ratelimit.GCRA, []ratelimit.Limit{per(8, time.Hour)}
	a, la := mustMemory(t, mustSet(t, was), ratelimit.Config{})
	for range 7 {
		takeKeyN(la, second(0), "k", 1)
	}
	b, lb := mustMemory(t, mustSet(t, is), ratelimit.Config{})
	mustImport(t, b, second(1), exported(a, second(1)))
	for i := range 3 {
		if d := takeKeyN(lb, second(1), "k", 1); !d.Allowed {
			t.Fatalf("event %d after 5 of 8: %+v", i+1, d)
		}
	}
	if d := takeKeyN(lb, second(1), "k", 1); d.BannedUntil.IsZero() {
		t.Errorf("after two refusals before and a third now: %+v", d)
	}
}

// TestImportOfUnknownRules renames a rule, and changes its key and its fold.
func TestImportOfUnknownRules(t *testing.T) {
	key := func(fold match.Fold, names ...string) match.Key {
		k := must.Get(match.NewKey(fold, names...))(t)
		return k
	}
	r := ratelimit.Rule{Name: "r", Key: key(match.Fold{}, "client"), Limits: []ratelimit.Limit{per(5, time.Hour)}}
	a, la := mustMemory(t, mustSet(t, r), ratelimit.Config{})
	takeKeyN(la, second(0), "192.0.2.1", 1)
	chunks := exported(a, second(0))
	for name, change := range map[string]func(r *ratelimit.Rule){
		"name":     func(r *ratelimit.Rule) { r.Name = "s" },
		"field":    func(r *ratelimit.Rule) { r.Key = key(match.Fold{}, "user") },
		"fields":   func(r *ratelimit.Rule) { r.Key = key(match.Fold{}, "client", "path") },
		"ipv4":     func(r *ratelimit.Rule) { r.Key = key(match.Fold{IPv4: 24}, "client") },
		"ipv6":     func(r *ratelimit.Rule) { r.Key = key(match.Fold{IPv6: 63}, "client") },
		"unfolded": func(r *ratelimit.Rule) { r.Key = key(match.Fold{Off: true}, "client") },
		"nothing":  func(*ratelimit.Rule) {},
	} {
		changed := r
		change(&changed)
		b, _ := mustMemory(t, mustSet(t, changed), ratelimit.Config{})
		did := mustImport(t, b, second(0), chunks)
		if want := (window.Imported{Unknown: 1}); name != "nothing" && did != want || name == "nothing" && did.Keys != 1 {
			t.Errorf("%s has changed: %+v", name, did)
		}
	}
}

// TestImportCapsBans shortens the longest ban of a rule between export and import.
func TestImportCapsBans(t *testing.T) {
	long := ban(t, "r", ratelimit.Ban{Span: time.Minute, For: 10 * time.Hour})
	a, la := mustMemory(t, mustSet(t, long), ratelimit.Config{})
	takeKeyN(la, second(0), "k", 1)
	short := ban(t, "r", ratelimit.Ban{Span: time.Minute, For: time.Hour, Max: time.Hour})
	b, lb := mustMemory(t, mustSet(t, short), ratelimit.Config{})
	mustImport(t, b, second(60), exported(a, second(60)))
	if d := peekKeyN(lb, second(60), "k", 1); !d.BannedUntil.Equal(second(3660)) {
		t.Errorf("a ban of ten hours under a rule with bans of one: %+v", d)
	}
}
