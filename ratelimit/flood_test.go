package ratelimit_test

import (
	"container/list"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// longFloods makes the floods as long as the requirement: tens of millions of keys, for minutes.
func longFloods() bool { return os.Getenv("LATELY_LONG") != "" }

// A bouncer lets keys in or not: a Limiter, or a control.
type bouncer interface {
	allows(key string, t time.Time) bool
}

type limiterBouncer struct{ *ratelimit.Limiter }

func (l limiterBouncer) allows(key string, t time.Time) bool {
	return takeKeyN(l.Limiter, t, key, 1).Allowed
}

// lru is the control for which floods are designed: it stores exact times of a fixed number of the most recent keys, and so
// evicts keys that it refused. It limits each key to n in span, and bans it for good after a number of hits.
type lru struct {
	n, after, most int
	span           time.Duration
	keys           map[string]*list.Element
	order          list.List // of *lruKey, newest first
}

type lruKey struct {
	key   string
	times []time.Time // allowed
	hits  int
}

func newLRU(n, after, most int, span time.Duration) *lru {
	return &lru{n: n, after: after, most: most, span: span, keys: make(map[string]*list.Element)}
}

func (l *lru) allows(key string, t time.Time) bool {
	e := l.keys[key]
	if e == nil {
		if l.order.Len() == l.most {
			last := l.order.Back()
			delete(l.keys, last.Value.(*lruKey).key)
			l.order.Remove(last)
		}
		e = l.order.PushFront(&lruKey{key: key})
		l.keys[key] = e
	}
	l.order.MoveToFront(e)
	k := e.Value.(*lruKey)
	k.hits++
	for len(k.times) > 0 && !k.times[0].After(t.Add(-l.span)) {
		k.times = k.times[1:]
	}
	if k.hits > l.after || len(k.times) >= l.n {
		return false
	}
	k.times = append(k.times, t)
	return true
}

// heapNow returns the size of the reachable heap.
func heapNow() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A memoryWatch compares the memory that a Memory may have with what it has.
type memoryWatch struct {
	memory       *ratelimit.Memory
	before       int64
	heap, stated int64 // the most seen
}

func (w *memoryWatch) look() {
	w.heap = max(w.heap, heapNow()-w.before)
	w.stated = max(w.stated, w.memory.Stats().Bytes)
}

// check wants the budget kept: to the byte by what the Memory accounts for, and
// to a twentieth by what the heap holds.
func (w *memoryWatch) check(t *testing.T) {
	t.Helper()
	budget := w.memory.Stats().Budget
	t.Logf("of a budget of %d KiB, %.3f accounted and %.3f in the heap at most", budget>>10, float64(w.stated)/float64(budget), float64(w.heap)/float64(budget))
	if w.stated > budget || w.heap > budget*105/100 {
		t.Errorf("%d bytes accounted, %d in the heap, of a budget of %d", w.stated, w.heap, budget)
	}
	// A quarter is for long logs, which hardly any key here has.
	if w.stated < budget*3/5 {
		t.Errorf("%d bytes of %d: the flood does not reach the budget", w.stated, budget)
	}
	runtime.KeepAlive(w.memory)
}

// newFlooded returns a limiter with that budget, and what watches it.
func newFlooded(t *testing.T, budget int64, rules ...ratelimit.Rule) (*ratelimit.Limiter, *memoryWatch) {
	t.Helper()
	s := mustSet(t, rules...)
	before := heapNow()
	m := must.Get(ratelimit.NewMemory(s, ratelimit.Config{Budget: budget}))(t)
	return ratelimit.Over(s, m), &memoryWatch{memory: m, before: before}
}

// A flood is the number of keys of each kind.
type flood struct {
	bans, limited, random int
	budget                int64
}

func floodSize() flood {
	switch {
	case longFloods():
		return flood{bans: 10_000, limited: 100_000, random: 20_000_000, budget: 64 << 20}
	case testing.Short():
		return flood{bans: 200, limited: 2_000, random: 40_000, budget: 2 << 20}
	}
	return flood{bans: 1_000, limited: 10_000, random: 300_000, budget: 8 << 20}
}

const (
	floodLimit = 5
	floodAfter = 20
	floodSpan  = time.Hour
)

func floodRules(t testing.TB) []ratelimit.Rule {
	return []ratelimit.Rule{
		limitRule(t, "limit", per(floodLimit, floodSpan)),
		ban(t, "ban", ratelimit.Ban{After: floodAfter, Span: floodSpan, For: 24 * time.Hour}),
	}
}

// run bans and limits keys, floods b with random keys for half the span, and counts how many of the first two kinds are
// allowed. It calls look now and then.
func (f flood) run(t *testing.T, b bouncer, look func()) (bans, limited int) {
	rnd := randtest.New(t)
	now := time.Unix(1_000_000, 0)
	banned := func(i int) string { return "banned-" + strconv.Itoa(i) }
	full := func(i int) string { return "limited-" + strconv.Itoa(i) }
	for i := range f.bans {
		for range floodAfter + 1 {
			b.allows(banned(i), now)
		}
	}
	for i := range f.limited {
		for range floodLimit {
			if !b.allows(full(i), now) {
				t.Fatalf("%s is refused below its limit", full(i))
			}
		}
	}
	step := floodSpan / 2 / time.Duration(f.random)
	for i := range f.random {
		now = now.Add(step)
		b.allows(strconv.FormatUint(rnd.Uint64(), 36), now)
		if i%100 == 0 {
			if b.allows(banned(rnd.IntN(f.bans)), now) {
				bans++
			}
			if b.allows(full(rnd.IntN(f.limited)), now) {
				limited++
			}
		}
		if (i+1)%(f.random/8) == 0 {
			look()
		}
	}
	for i := range f.bans {
		if b.allows(banned(i), now) {
			bans++
		}
	}
	for i := range f.limited {
		if b.allows(full(i), now) {
			limited++
		}
	}
	return bans, limited
}

// A flood of random keys releases no one: bans hold, clients at the limit are refused for the window, and memory stays
// within the budget.
func TestConcurrentFloodEndsNoRefusal(t *testing.T) {
	f := floodSize()
	l, watch := newFlooded(t, f.budget, floodRules(t)...)
	bans, limited := f.run(t, limiterBouncer{l}, watch.look)
	if bans > 0 || limited > 0 {
		t.Errorf("%d banned keys and %d keys at the limit were allowed", bans, limited)
	}
	s := l.Stats()
	if s.Bans != uint64(f.bans) || s.BansRefused != 0 {
		t.Errorf("%d bans hold, %d were refused; want %d and 0", s.Bans, s.BansRefused, f.bans)
	}
	if s.Rules[0].Evicted == 0 {
		t.Error("nothing was evicted: the flood is too small")
	}
	watch.check(t)
	t.Logf("%+v", s)
	if !takeKeyN(l, time.Unix(1_000_000, 0).Add(floodSpan/2), "someone new", 1).Allowed {
		t.Error("someone new is refused after the flood")
	}
}

// The control: the same flood evicts everything from a plain LRU of ten thousand times as many keys as the bans in the long
// form.
func TestConcurrentFloodControl(t *testing.T) {
	f := floodSize()
	f.random = min(f.random, 300_000)
	f.bans, f.limited = min(f.bans, 1000), min(f.limited, 10_000)
	bans, limited := f.run(t, newLRU(floodLimit, floodAfter, 2*(f.bans+f.limited), floodSpan), func() {})
	if bans == 0 || limited == 0 {
		t.Errorf("%d banned keys and %d keys at the limit were allowed: the flood is harmless", bans, limited)
	}
}

// cycle is the attack on a login limiter that evicts keys (CVE-2024-21662): one attempt below the limit, enough other names
// to fill the table, another attempt. It returns how many attempts beyond the allowed number the victims made, or a
// negative number.
func cycle(t *testing.T, b bouncer, names, rounds int) (more, fewer int) {
	const victims, n = 50, 10
	now := time.Unix(1_000_000, 0)
	allowed := make([]int, victims)
	try := func(i, times int) {
		for range times {
			if b.allows("victim-"+strconv.Itoa(i), now) {
				allowed[i]++
			}
		}
	}
	for i := range victims {
		try(i, n-1)
	}
	for round := range rounds {
		for i := range names {
			now = now.Add(floodSpan / time.Duration(2*rounds*names))
			b.allows("name-"+strconv.Itoa(round)+"-"+strconv.Itoa(i), now)
		}
		for i := range victims {
			try(i, 2)
		}
	}
	for _, a := range allowed {
		more, fewer = more+max(a-n, 0), fewer+max(n-a, 0)
	}
	return more, fewer
}

func TestFloodOfNamesGivesNoAttempts(t *testing.T) {
	names, budget, room := 100_000, int64(1<<20), 10_000
	if longFloods() {
		names, budget, room = 2_000_000, 20<<20, 200_000
	}
	if testing.Short() {
		names, budget, room = 20_000, 1<<18, 2_000
	}
	l, _ := newFlooded(t, budget, limitRule(t, "login", per(10, floodSpan)))
	if more, fewer := cycle(t, limiterBouncer{l}, names, 2); more != 0 || fewer != 0 {
		t.Errorf("the victims had %d attempts too many and %d too few", more, fewer)
	}
	if s := l.Stats(); s.Rules[0].Keys > names/5 {
		t.Errorf("the table holds %d of %d names: the flood is too small", s.Rules[0].Keys, names)
	}
	if more, _ := cycle(t, newLRU(10, 1<<30, room, floodSpan), names, 2); more == 0 {
		t.Error("the control gives no attempts away either: the test shows nothing")
	}
}

// onceEach lets each key come three times within the span, and returns how many
// got in, and how often one did again.
func onceEach(b bouncer, keys int) (allowed, again int) {
	now := time.Unix(1_000_000, 0)
	seen := make([]uint64, (keys+63)/64)
	step := floodSpan / time.Duration(4*keys)
	for range 3 {
		for i := range keys {
			now = now.Add(step)
			if !b.allows("key-"+strconv.Itoa(i), now) {
				continue
			}
			if seen[i/64]>>(i%64)&1 != 0 {
				again++
			} else {
				allowed++
			}
			seen[i/64] |= 1 << (i % 64)
		}
	}
	return allowed, again
}

// Many keys each reach their limit at once, more than the budget can protect: none is allowed twice. Keys without memory
// share the sketch; the smaller it is, the fewer are allowed at all.
func TestFloodOfKeysAtTheirLimit(t *testing.T) {
	keys, budget, room := 100_000, int64(4_000*128), 4_000
	if longFloods() {
		keys, budget, room = 5_000_000, int64(200_000*128), 200_000
	}
	if testing.Short() {
		keys, budget, room = 15_000, int64(1_000*128), 1_000
	}
	l, watch := newFlooded(t, budget, limitRule(t, "once", per(1, floodSpan)))
	allowed, again := onceEach(limiterBouncer{l}, keys)
	watch.look()
	watch.check(t)
	s := l.Stats().Rules[0]
	t.Logf("%d of %d got in; %+v", allowed, keys, s)
	if again != 0 {
		t.Errorf("%d got in again", again)
	}
	if s.Sketched == 0 || s.Evicted > 0 || allowed <= s.Keys {
		t.Errorf("%d got in, %d decisions by the sketch, %d keys, %d evicted", allowed, s.Sketched, s.Keys, s.Evicted)
	}
	if _, again := onceEach(newLRU(1, 1<<30, room, floodSpan), keys); again == 0 {
		t.Error("the control lets nobody in again either: the test shows nothing")
	}
}
