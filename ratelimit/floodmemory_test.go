package ratelimit_test

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// roomBudget holds some twenty thousand keys.
const roomBudget = 4 << 20

// fillUp brings keys that use so much each, at least half of the limit, until three of
// four find no memory.
func fillUp(t *testing.T, l *ratelimit.Limiter, now time.Time, used uint64) {
	t.Helper()
	const batch = 512
	for first := 0; first < 1_000_000; first += batch {
		before := l.Stats().Rules[0].Keys
		for i := range batch {
			takeKeyN(l, now, "resident-"+strconv.Itoa(first+i), used)
		}
		if l.Stats().Rules[0].Keys-before < batch/4 {
			return
		}
	}
	t.Fatal("there is memory for all")
}

// A key that comes to a table full of protected keys is still counted: it gets what the limit allows and never more, and
// the statistics report it. After many such keys, a few get less.
func TestFullTable(t *testing.T) {
	const n, guests = 4, 500
	now := time.Unix(1_000_000, 0)
	l, watch := newFlooded(t, roomBudget, limitRule(t, "r", per(n, floodSpan)))
	fillUp(t, l, now, n/2)
	before := l.Stats().Rules[0]
	often, outside := map[int]int{}, 0
	for i := range guests {
		sketched := l.Stats().Rules[0].Sketched
		allowed := 0
		for range 2 * n {
			d := takeKeyN(l, now.Add(time.Minute), "guest-"+strconv.Itoa(i), 1)
			if d.Allowed {
				allowed++
			} else if d.RetryAfter <= 0 || d.RetryAfter > floodSpan*9/8 {
				t.Fatalf("guest %d: refused for %v", i, d.RetryAfter)
			}
		}
		often[allowed]++
		switch l.Stats().Rules[0].Sketched - sketched {
		case 0:
		case 2 * n:
			outside++
		default:
			t.Fatalf("guest %d: some decisions by the sketch, some not: %+v", i, l.Stats().Rules[0])
		}
	}
	after := l.Stats().Rules[0]
	t.Logf("%d of %d guests found no memory; how many were allowed how often: %v; %+v", outside, guests, often, after)
	if outside < guests/2 {
		t.Errorf("only %d of %d guests found no memory", outside, guests)
	}
	for times := range often {
		if times > n {
			t.Errorf("%d guests were allowed %d times of %d", often[times], times, n)
		}
	}
	if often[n] < guests*8/10 { // nine to ten of ten, by the seed of the hashes
		t.Errorf("only %d of %d guests were allowed %d times", often[n], guests, n)
	}
	if after.Evicted != before.Evicted || after.Expired != before.Expired {
		t.Errorf("protected keys went: %+v, then %+v", before, after)
	}
	watch.look()
	watch.check(t)
}

// Counts in the sketch are kept when the key gets memory of its own.
func TestMemoryComesBack(t *testing.T) {
	const n, guests = 4, 500
	l, _ := newFlooded(t, roomBudget, limitRule(t, "r", per(n, floodSpan)))
	start := time.Unix(1_000_000, 0)
	fillUp(t, l, start, n/2)
	allowed := [guests]int{}
	visit := func(after time.Duration) (total int) {
		for i := range guests {
			allowed[i] = 0
			for range n + 1 {
				if takeKeyN(l, start.Add(after), "guest-"+strconv.Itoa(i), 1).Allowed {
					allowed[i]++
				}
			}
			total += allowed[i]
		}
		return total
	}
	before := l.Stats().Rules[0]
	if got := visit(floodSpan / 2); got < guests*n*9/10 || got > guests*n {
		t.Errorf("guests were allowed %d times, want about %d", got, guests*n)
	}
	first, s := allowed, l.Stats().Rules[0]
	if s.Sketched-before.Sketched < guests {
		t.Errorf("%d decisions by the sketch: there was memory", s.Sketched-before.Sketched)
	}
	// The residents have expired; the guests' windows have not.
	visit(floodSpan + time.Minute)
	for i, again := range allowed {
		if first[i]+again > n {
			t.Errorf("guest %d was allowed %d times, and then %d times more within the window", i, first[i], again)
		}
	}
	sketched := l.Stats().Rules[0].Sketched
	if s = l.Stats().Rules[0]; s.Expired == 0 || s.Keys-before.Keys > 0 {
		t.Errorf("%d keys have expired and %d are there: the residents are", s.Expired, s.Keys)
	}
	// The sketch lets go an eighth of the span later than the window. In one run of some
	// 3,000, by the seed of the hashes, a guest shares all its counters with guests before.
	if got := visit(2 * floodSpan); got < guests*n*99/100 || got > guests*n {
		t.Errorf("guests were allowed %d times after the window, want %d, or few less", got, guests*n)
	}
	// A page full of protected keys is searched now and then, not for every new key; otherwise all of them would be in the
	// sketch.
	if s = l.Stats().Rules[0]; s.Sketched-sketched > guests*n/2 {
		t.Errorf("%d decisions by the sketch though there is memory, where %d keys were", s.Sketched-sketched, before.Keys)
	}
}

// A budget too small for a sketch refuses new keys, with an error.
func TestNoMemoryAtAll(t *testing.T) {
	rules := []ratelimit.Rule{limitRule(t, "r", per(1, floodSpan))}
	s := mustSet(t, rules...)
	least := int64(1)
	for ; least < 1<<24; least += least / 16 {
		if _, err := ratelimit.NewMemory(s, ratelimit.Config{Budget: least}); err == nil {
			break
		}
		least++
	}
	l, _ := newFlooded(t, least, rules...)
	now := time.Unix(1_000_000, 0)
	allowed, again := 0, 0
	for range 2 {
		again, allowed = allowed, 0
		for i := range 10_000 {
			d := takeKeyN(l, now, "key-"+strconv.Itoa(i), 1)
			if d.Allowed {
				allowed++
			} else if d.RetryAfter <= 0 {
				t.Fatalf("refused for %v", d.RetryAfter)
			}
		}
	}
	st := l.Stats()
	t.Logf("budget %d: %d of 10000 allowed, then %d; %+v", least, again, allowed, st)
	if allowed != 0 {
		t.Errorf("%d keys got in again", allowed)
	}
	if st.Bytes > st.Budget {
		t.Errorf("%d bytes of %d", st.Bytes, st.Budget)
	}
	if r := st.Rules[0]; r.Full+r.Sketched == 0 {
		t.Error("no decision about keys without memory was counted")
	}
}

// The heap grows with the keys, by the amount accounted for, and shrinks when they have expired and others come now and
// then.
func TestMemoryLadder(t *testing.T) {
	rungs := []int{20_000, 50_000, 100_000}
	if longFloods() {
		rungs = []int{1_000_000, 2_000_000, 5_000_000}
	}
	if testing.Short() {
		rungs = []int{5_000, 10_000}
	}
	for _, keys := range rungs {
		l, watch := newFlooded(t, int64(keys)*200, limitRule(t, "r", per(10, time.Minute)))
		empty := heapNow() - watch.before
		now := time.Unix(1_000_000, 0)
		for i := range keys {
			takeKeyN(l, now, "key-"+strconv.Itoa(i), 1)
		}
		up, s := heapNow()-watch.before, l.Stats()
		if s.Rules[0].Keys != keys {
			t.Fatalf("%d keys of %d", s.Rules[0].Keys, keys)
		}
		// Far apart, so that hardly any two are in the table at once. This many new keys cause all pages to be searched.
		for i := range 6 * keys {
			now = now.Add(10 * time.Second)
			takeKeyN(l, now, "later-"+strconv.Itoa(i), 1)
		}
		down := heapNow() - watch.before
		t.Logf("%d keys: %d bytes each in the heap, %d accounted; empty %d KiB, full %d KiB, expired %d KiB; %d keys left",
			keys, (up-empty)/int64(keys), s.Bytes/int64(keys), empty>>10, up>>10, down>>10, l.Stats().Rules[0].Keys)
		if up > s.Bytes*105/100 {
			t.Errorf("%d keys: %d bytes in the heap, %d accounted", keys, up, s.Bytes)
		}
		if down > empty+(up-empty)/5 {
			t.Errorf("%d keys: %d bytes in the heap when empty, %d full, %d when all have expired", keys, empty, up, down)
		}
		runtime.KeepAlive(l)
	}
}

// From many goroutines, keys without memory get no more than the limit either,
// while residents expire and memory is freed and taken.
func TestConcurrentFullTableFromManySides(t *testing.T) {
	const n, guests, goroutines = 4, 200, 4
	l, _ := newFlooded(t, 1<<20, limitRule(t, "r", per(n, floodSpan)))
	start := time.Unix(1_000_000, 0)
	fillUp(t, l, start, n/2)
	var allowed [guests]atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for round := range 2*n + 2 {
				// The residents expire in the last rounds; the guests do not.
				now := start.Add(floodSpan/2 + time.Duration(round)*floodSpan/16)
				for i := range guests {
					if takeKeyN(l, now, "guest-"+strconv.Itoa(i), 1).Allowed {
						allowed[i].Add(1)
					}
					takeKeyN(l, now, "other-"+strconv.Itoa(g*100_000+round*1000+i), 1)
				}
			}
		})
	}
	wg.Wait()
	s := l.Stats().Rules[0]
	t.Logf("%+v", s)
	// A key that has used 1 may be evicted and begin again: see Limit.MaxAllowed.
	most := int64(n + s.Evicted*((n+1)/2-1))
	for i := range allowed {
		if got := allowed[i].Load(); got > most {
			t.Errorf("guest %d was allowed %d times of %d", i, got, most)
		}
	}
	if s.Sketched == 0 || s.Expired == 0 {
		t.Errorf("%d decisions by the sketch, %d keys expired: the test shows nothing", s.Sketched, s.Expired)
	}
}

// A sketch may refuse too much, but must not ban: no one is banned for the hits of another key.
func TestSketchBeginsNoBan(t *testing.T) {
	l, watch := newFlooded(t, 1<<20, ban(t, "b", ratelimit.Ban{After: 4, Span: floodSpan, For: 24 * time.Hour}))
	now := time.Unix(1_000_000, 0)
	refused := 0
	for i := range 50_000 {
		for range 3 {
			if !takeKeyN(l, now, "key-"+strconv.Itoa(i), 1).Allowed {
				refused++
			}
		}
	}
	s := l.Stats()
	t.Logf("%d of %d refused; %+v", refused, 150_000, s)
	if s.Bans != 0 || s.Rules[0].BansStarted != 0 {
		t.Errorf("%d keys were banned for more than 4 hits; each had 3", s.Rules[0].BansStarted)
	}
	if s.Rules[0].Sketched == 0 {
		t.Error("there was memory for all: the test shows nothing")
	}
	watch.look()
	watch.check(t)
}

// A key without memory never gets more than its algorithm would give it, in any
// stretch of time: a burst, and N for each span.
func TestSketchKeepsToTheRate(t *testing.T) {
	sketched := uint64(0)
	for _, a := range []ratelimit.Algorithm{ratelimit.GCRA, ratelimit.LeakyBucket} {
		for _, l := range []ratelimit.Limit{{N: 10, Span: time.Second, Burst: 100}, {N: 100, Span: time.Second, Burst: 10}, {N: 50, Span: time.Second}} {
			sketched += testRate(t, a, l)
		}
	}
	if sketched < 60_000 { // of 120,000: whether the page of a key is full is a matter of chance
		t.Errorf("%d decisions by the sketch: the test shows nothing", sketched)
	}
}

// testRate returns how many decisions the sketch made.
func testRate(t *testing.T, a ratelimit.Algorithm, lim ratelimit.Limit) uint64 {
	rule := limitRule(t, "r", lim)
	rule.Algorithm = a
	l, _ := newFlooded(t, 1<<20, rule)
	start := time.Unix(1_000_000, 0)
	burst := lim.Burst
	if burst == 0 {
		burst = lim.N
	}
	fillUp(t, l, start, burst)
	before := l.Stats().Rules[0]
	// By then half of what the residents have used has drained, and some go.
	stretch := min(lim.Span*time.Duration(burst)/time.Duration(2*lim.N), 4*lim.Span)
	const guests, steps = 20, 1000
	highest := uint64(0)
	for i := range guests {
		allowed := uint64(0)
		for step := range steps {
			if takeKeyN(l, start.Add(stretch*time.Duration(step)/steps), "guest-"+strconv.Itoa(i), 1).Allowed {
				allowed++
			}
		}
		highest = max(highest, allowed)
	}
	most := burst + lim.N*uint64(stretch)/uint64(lim.Span) + 1
	s := l.Stats().Rules[0]
	t.Logf("%v %+v: allowed %d of at most %d in %v; %d decisions by the sketch", a, lim, highest, most, stretch, s.Sketched-before.Sketched)
	if highest > most {
		t.Errorf("%v %+v: allowed %d in %v, most is %d", a, lim, highest, stretch, most)
	}
	if highest == 0 {
		t.Errorf("%v %+v: none allowed: the test shows nothing", a, lim)
	}
	return s.Sketched - before.Sketched
}
