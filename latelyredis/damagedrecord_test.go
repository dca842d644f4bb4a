package latelyredis_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A damagedKind is a rule and a record in Redis, which the test damages.
type damagedKind struct {
	*testing.T
	name   string
	rules  *ratelimit.Set
	client rueidis.Client
	store  *latelyredis.Store
	key    string              // in Redis
	most   time.Duration       // the longest that the record lives and an event waits
	charge latelyredis.Subject // an event that was charged
}

// newDamagedKind returns a rule and its record after events of these costs. With ban, the key is banned by hand before.
func newDamagedKind(t *testing.T, name string, r ratelimit.Rule, ban bool, costs ...uint64) *damagedKind {
	t.Helper()
	config := prefixed()
	k := &damagedKind{T: t, name: name, rules: set(t, r), client: redis(t).client(t), key: config.Prefix + "{path=k}:r", most: 7 * time.Hour}
	k.store = quiet(t, k.client, k.rules, config)
	k.store.NeverAway()
	if ban {
		must.Do(t, k.store.Ban(t.Context(), ratelimit.BanRecord{Rule: "r", Key: []string{"k"}, Until: time.Now().Add(time.Hour)}))
	}
	if r.Ban != nil || ban {
		k.most += 7 * 24 * time.Hour // for which a ban is remembered
	}
	if r.Algorithm.Bursts() && r.Limits[0].AtMost > 0 {
		k.most *= 4 * time.Duration(r.Limits[0].AtMost) // it may drain by one in a span
	}
	for _, cost := range costs {
		x := k.take(cost, false)
		if must.Do(t, x.Err); x.Subjects[0].Outcome.Charged {
			k.charge = x.Subjects[0]
		}
	}
	return k
}

func (k *damagedKind) take(cost uint64, peek bool) *latelyredis.Request {
	r := &latelyredis.Request{Set: k.rules, Cost: cost, Peek: peek, Subjects: []latelyredis.Subject{about(0, "k")}}
	k.store.Decide(k.Context(), []*latelyredis.Request{r})
	return r
}

func (k *damagedKind) reset() error {
	return k.store.Adjust(k.Context(), &latelyredis.Adjustment{Change: latelyredis.Reset, Set: k.rules, Key: []byte("k")})
}

func (k *damagedKind) unban() error {
	_, err := k.store.Unban(k.Context(), "r", []byte("k"))
	return err
}

// calls are all calls about a record.
func (k *damagedKind) calls() map[string]func() error {
	return map[string]func() error{
		"TAKE 1":      func() error { return k.take(1, false).Err },
		"TAKE 3":      func() error { return k.take(3, false).Err },
		"TAKE of all": func() error { return k.take(20, false).Err },
		"PEEK":        func() error { return k.take(1, true).Err },
		"CHARGE": func() error {
			return k.store.Adjust(k.Context(), &latelyredis.Adjustment{Set: k.rules, Key: []byte("k"), N: 2})
		},
		"REFUND": func() error {
			return k.store.Adjust(k.Context(), &latelyredis.Adjustment{Change: latelyredis.Refund, Set: k.rules, Key: []byte("k"), N: 2})
		},
		"SETTLE": func() error {
			return k.store.Settle(k.Context(), &latelyredis.Settlement{Set: k.rules, Charged: 1, Subjects: []latelyredis.Subject{k.charge}})
		},
		"BAN": func() error {
			return k.store.Ban(k.Context(), ratelimit.BanRecord{Rule: "r", Key: []string{"k"}, Until: time.Now().Add(time.Hour)})
		},
		"RESET": k.reset,
		"UNBAN": k.unban,
	}
}

// check replaces the record, makes a call, and then others: at most one of them fails, with DAMAGED.
func (k *damagedKind) check(what, value, call string) (said bool) {
	k.Helper()
	most := k.most
	if call == "BAN" {
		most += 25 * time.Hour // it is remembered
	}
	try := func(name string, err error) {
		k.Helper()
		switch damage, ok := errors.AsType[*latelyredis.ServerError](err); {
		case err == nil:
		case !ok || damage.Code != "DAMAGED" || !strings.Contains(err.Error(), k.key) || name == "RESET" || name == "UNBAN" || said:
			k.Errorf("%s, %s: %s: %v", k.name, what, name, err)
		default:
			said = true
		}
	}
	began := cpu(k, k.client)
	do(k, k.client, "SET", k.key, value, "PX", strconv.FormatInt(time.Hour.Milliseconds(), 10))
	try(call, k.calls()[call]())
	for range 3 {
		x := k.take(1, false)
		try("TAKE after "+call, x.Err)
		o := x.Subjects[0].Outcome
		if o.RetryAfter > most && o.RetryAfter != ratelimit.Never || o.ResetAfter > most {
			k.Errorf("%s, %s: after %s, an event waits for %v, and is counted for %v", k.name, what, call, o.RetryAfter, o.ResetAfter)
		}
	}
	if lives := must.Get(strconv.Atoi(do(k, k.client, "PTTL", k.key)))(k); time.Duration(lives)*time.Millisecond > most {
		k.Errorf("%s, %s: after %s, the record lives for %v", k.name, what, call, time.Duration(lives)*time.Millisecond)
	}
	try("UNBAN", k.unban())
	try("RESET", k.reset())
	x := k.take(1, false)
	o := x.Subjects[0].Outcome
	if try("TAKE after RESET", x.Err); o.Refused || o.Remaining+1 != o.Limit {
		k.Errorf("%s, %s: after RESET and UNBAN: %+v", k.name, what, o)
	}
	if took := cpu(k, k.client) - began; took > 200*time.Millisecond {
		k.Errorf("%s, %s, %s: the server has worked for %v", k.name, what, call, took)
	}
	return said
}

// cpu returns for how long the server has worked.
func cpu(t testing.TB, c rueidis.Client) time.Duration {
	t.Helper()
	_, text, _ := strings.Cut(do(t, c, "INFO", "cpu"), "used_cpu_user:")
	text, _, _ = strings.Cut(text, "\r")
	return time.Duration(must.Get(strconv.ParseFloat(text, 64))(t) * float64(time.Second))
}

// TestDamagedRecords changes each bit of records of each algorithm, cuts them and appends to them. Either one call fails with
// DAMAGED, or the damaged record is a possible one: then it does not live, and nobody is refused, for longer than a record of
// the rule can. No script takes long. RESET and UNBAN always succeed, and leave nothing of it.
func TestDamagedRecords(t *testing.T) {
	path := match.MustKey("path")
	rule := func(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
		return lasting(time.Hour, limited("r", path, a, n))
	}
	with := func(r ratelimit.Rule, change func(*ratelimit.Rule)) ratelimit.Rule {
		change(&r)
		return r
	}
	of := func(cause ratelimit.Cause) func(*ratelimit.Rule) {
		return func(r *ratelimit.Rule) {
			r.Ban = &ratelimit.Ban{After: 3, Of: cause, Span: time.Hour, For: time.Hour, Factor: 2, Extend: cause == ratelimit.Hits}
		}
	}
	kinds := []*damagedKind{
		newDamagedKind(t, "sliding", rule(ratelimit.Sliding, 20), false, 1, 1, 1),
		newDamagedKind(t, "sliding, used up", rule(ratelimit.Sliding, 10), false, 4, 6),
		newDamagedKind(t, "in flight", rule(ratelimit.InFlight, 20), false, 1, 1),
		newDamagedKind(t, "times of 200", rule(ratelimit.Sliding, 200), false, 1, 1, 1),
		newDamagedKind(t, "slots", rule(ratelimit.Sliding, 200), false, 5, 1),
		newDamagedKind(t, "slots, used up", rule(ratelimit.Sliding, 2000), false, 800, 1200),
		newDamagedKind(t, "slots of 4 bytes", rule(ratelimit.Sliding, 200_000), false, 70_000),
		newDamagedKind(t, "bucket", rule(ratelimit.GCRA, 20), false, 1, 3),
		newDamagedKind(t, "bucket, used up", rule(ratelimit.GCRA, 20), false, 20),
		newDamagedKind(t, "bucket, as full as it gets", with(rule(ratelimit.GCRA, 7), func(r *ratelimit.Rule) { r.Limits[0].Burst, r.CountRefused = 15, true }), false, 15, 15, 15),
		newDamagedKind(t, "leaky bucket", rule(ratelimit.LeakyBucket, 100_000), false, 50_000),
		newDamagedKind(t, "two buckets", rule(ratelimit.TwoBucket, 20), false, 3),
		newDamagedKind(t, "fixed", rule(ratelimit.Fixed, 20), false, 3),
		newDamagedKind(t, "calendar", with(rule(ratelimit.Calendar, 20), func(r *ratelimit.Rule) { r.Limits[0] = ratelimit.Limit{N: 20, Per: ratelimit.PerHour} }), false, 3),
		newDamagedKind(t, "bucket of data", with(rule(ratelimit.GCRA, 20), func(r *ratelimit.Rule) { r.Limits[0].AtMost = 40 }), false, 3),
		newDamagedKind(t, "two limits", with(rule(ratelimit.GCRA, 20), func(r *ratelimit.Rule) { r.Limits = append(r.Limits, ratelimit.Limit{N: 10, Span: 10 * time.Minute}) }), false, 2, 1),
		newDamagedKind(t, "counts refusals", with(rule(ratelimit.Sliding, 10), func(r *ratelimit.Rule) { r.CountRefused = true }), false, 10, 2),
		newDamagedKind(t, "hits", with(rule(ratelimit.Sliding, 20), of(ratelimit.Hits)), false, 1, 1),
		newDamagedKind(t, "banned after hits", with(rule(ratelimit.Sliding, 200), of(ratelimit.Hits)), false, 1, 1, 1, 1),
		newDamagedKind(t, "refusals", with(rule(ratelimit.Fixed, 10), of(ratelimit.Refusals)), false, 10, 1),
		newDamagedKind(t, "banned by hand", rule(ratelimit.GCRA, 20), true),
	}
	rng := randtest.New(t)
	for _, k := range kinds {
		var names []string
		for name := range k.calls() {
			if name != "SETTLE" || k.charge.Mark > 0 {
				names = append(names, name)
			}
		}
		value := do(t, k.client, "GET", k.key)
		if value == "" {
			t.Fatalf("%s: there is no record", k.name)
		}
		for _, name := range names {
			if k.check("as it was", value, name) {
				t.Errorf("%s: %s finds a record damaged that is not", k.name, name)
			}
		}
		for what, damaged := range damages(rng, value) {
			k.check(what, damaged, names[rng.IntN(len(names))])
		}
	}
}

// damages yields what may become of a value: all in the long form, else some.
func damages(rng *rand.Rand, value string) func(yield func(what, damaged string) bool) {
	every := 4
	if longForm() {
		every = 1
	}
	return func(yield func(what, damaged string) bool) {
		for i := range 8 * len(value) {
			b := []byte(value)
			b[i/8] ^= 1 << (i % 8)
			if rng.IntN(every) == 0 && !yield("bit "+strconv.Itoa(i%8)+" of byte "+strconv.Itoa(i/8)+" of "+strconv.Itoa(len(value)), string(b)) {
				return
			}
		}
		for n := range len(value) {
			if rng.IntN(every) == 0 && !yield("the first "+strconv.Itoa(n)+" bytes of "+strconv.Itoa(len(value)), value[:n]) {
				return
			}
		}
		for n := range 16 {
			b := make([]byte, n+1)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if rng.IntN(every) == 0 && !yield(strconv.Itoa(n+1)+" bytes more", value+string(b)) {
				return
			}
		}
	}
}

// TestDamagedBan damages the record of a banned key: the node that finds this writes the ban again.
func TestDamagedBan(t *testing.T) {
	r := banning("r", match.MustKey("path"), 1)
	r.Ban.Extend = true // so that Redis decides
	rules, config, client := set(t, r), prefixed(), redis(t).client(t)
	store := must.Get(latelyredis.NewQuietWith(latelyredis.NewConn(client), rules, config))(t)
	must.Do(t, store.Sync(t.Context()))
	before := ask(t, store, rules, about(0, "k"), about(0, "other"))
	ask(t, store, rules, about(0, "k"))
	for _, call := range []func() error{
		func() error { return take(t.Context(), store, rules, "k").Err },
		func() error {
			return store.Adjust(t.Context(), &latelyredis.Adjustment{Change: latelyredis.Reset, Set: rules, Key: []byte("k")})
		},
	} {
		do(t, client, "SETRANGE", config.Prefix+"{path=k}:r", "20", "damaged")
		if err := call(); err != nil {
			wantCode(t, err, "DAMAGED", config.Prefix+"{path=k}:r")
		}
		must.Do(t, store.Sync(t.Context()))
		must.Do(t, store.Sync(t.Context()))
		if o := peek(t, quiet(t, client, rules, config), rules, about(0, "k")); !o.Banned {
			t.Errorf("the record has no ban: %+v, and before %+v", o, before[0].Outcome)
		}
	}
	unban(t, store, "r", "k")
	must.Do(t, store.Sync(t.Context()))
	if o := peek(t, store, rules, about(0, "k")); o.Banned {
		t.Errorf("a ban that was ended is there again: %+v", o)
	}
}

// TestDamagedMerges changes each bit of what Redis keeps of the merges of a node: the next one is answered.
func TestDamagedMerges(t *testing.T) {
	config, client := prefixed(), redis(t).client(t)
	config.Batched = true
	rules := set(t, limited("r", match.MustKey("path"), ratelimit.Fixed, 100_000))
	store := must.Get(latelyredis.NewQuietWith(latelyredis.NewConn(client), rules, config))(t)
	must.Do(t, store.Sync(t.Context()))
	merge := func() bool {
		ask(t, store, rules, about(0, "k"))
		return store.Merge(t.Context())
	}
	merge()
	merge()
	names := strings.Fields(do(t, client, "KEYS", config.Prefix+"{path=k}:r~*"))
	if len(names) != 1 {
		t.Fatalf("%q, want the number of the last merge", names)
	}
	value := do(t, client, "GET", names[0])
	for what, damaged := range damages(randtest.New(t), value) {
		if do(t, client, "SET", names[0], damaged, "PX", "60000"); !merge() {
			t.Errorf("%s: %q instead of %q: the merge was not answered", what, damaged, value)
		}
	}
}

// TestIntactRecords has two nodes with different rules make all calls about a key at random times, also with the clock set back. Each
// call checks the record: it is never damaged.
func TestIntactRecords(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	rng, client := randtest.New(t), redis(t).client(t)
	edited := 0
	checks := func(text string) string { // leaves each decision to the script that checks
		edited += strings.Count(text, "pcall(decide, i)")
		return strings.ReplaceAll(text, "pcall(decide, i)", "false")
	}
	for range rounds {
		now, config := clockAt(time.Now()), prefixed()
		var nodes [2]*ratelimit.Limiter
		var rules [2]*ratelimit.Set
		for i := range nodes {
			r := randomRules(rng)[0]
			r.CountRefused = r.Algorithm != ratelimit.InFlight && len(r.Limits) > 0 && rng.IntN(2) == 0
			rules[i] = set(t, r)
			store := storeAt(t, client, rules[i], config, now)
			store.EditScripts(true, checks)
			nodes[i] = limiterOf(t, rules[i], store)
		}
		for range 60 {
			if now.Add(gap(rng, rules[0])); rng.IntN(20) == 0 {
				now.Add(-rng.Int64N(time.Hour.Microseconds()))
			}
			i, n := max(rng.IntN(8)-6, 0), cost(rng, rules[0]) // mostly the first, so that counts stay
			r := ruleOf(t, nodes[i])
			if err := anyCall(rng, now, nodes[i], r, n); err != nil && strings.Contains(err.Error(), "DAMAGED") {
				t.Fatalf("%v, with %+v and %+v", err, *rules[0].Rules()[0], *rules[1].Rules()[0])
			}
		}
	}
	if edited == 0 {
		t.Error("no script was changed")
	}
}

// TestSoundRecords has calls write records with unusual numbers. The next call must not find them damaged, which deletes them.
func TestSoundRecords(t *testing.T) {
	t.Parallel()
	full := limited("full", match.MustKey("path"), ratelimit.GCRA, 754_986_513)
	full.Limits[0].Burst, full.Limits[0].Span, full.CountRefused = 3_539_186_051, 30*24*time.Hour, true
	banned := limited("banned", match.MustKey("path"), ratelimit.Sliding, 1)
	now := clockAt(time.Now())
	l := nodeAt(t, set(t, full, banned), prefixed(), now)
	limits, bans := must.Get(l.Rule("full"))(t), must.Get(l.Rule("banned"))(t)
	refund := func(r *ratelimit.RuleLimiter, what, key string) {
		if _, err := r.Refund(0, key); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	for range 3 {
		limits.TakeAt(time.Time{}, full.Limits[0].Burst, "full")
	}
	refund(limits, "a full bucket, whose end is rounded as a double", "full")

	started := time.UnixMicro(now.Load())
	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "banned", Key: []string{"old"}, Until: started.Add(time.Hour)}))
	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "banned", Key: []string{"ended"}, Until: started.Add(time.Second)}))
	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "banned", Key: []string{"ancient"}, Since: time.Unix(-1, 0), Until: started.Add(time.Hour)}))
	now.Add(time.Hour.Microseconds() / 2)
	if d := bans.TakeAt(time.Time{}, 1, "ancient"); d.Err != nil || d.BannedUntil.IsZero() {
		t.Errorf("a ban since 1969: %+v", d)
	}
	refund(bans, "a ban", "old")
	bans.TakeAt(time.Time{}, 1, "ended")
	now.Store(time.Minute.Microseconds()) // a machine without a battery has started
	for _, key := range []string{"old", "ended"} {
		for range 2 {
			refund(bans, "a ban, in 1970", key)
		}
		if d := bans.TakeAt(time.Time{}, 1, key); d.Err != nil || d.BannedUntil.IsZero() == (key == "old") {
			t.Errorf("the %s ban, in 1970: %+v", key, d)
		}
	}
}

// anyCall makes a random call about the key "/", mostly TAKE.
func anyCall(rng *rand.Rand, now *atomic.Int64, l *ratelimit.Limiter, r *ratelimit.RuleLimiter, n uint64) (err error) {
	switch rng.IntN(16) {
	case 0, 1:
		_, err = r.Refund(n, "/")
	case 2:
		err = r.Charge(n, "/")
	case 3:
		err = l.Bans().Add(ratelimit.BanRecord{Rule: "r0", Key: []string{"/"}, Until: time.UnixMicro(now.Load()).Add(time.Hour)})
	case 4:
		_, err = l.Bans().Remove("r0", "/")
	case 5:
		if rng.IntN(4) == 0 {
			err = r.Reset("/")
		}
	case 6, 7:
		if reserved := r.Reserve(n, "/"); reserved.Decision.Err == nil {
			return reserved.Settle(rng.Uint64N(n/2 + 2))
		}
	default:
		err = r.TakeAt(time.Time{}, n, "/").Err
	}
	return err
}
