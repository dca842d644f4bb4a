package ratelimit_test

import (
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// hooked returns a limiter and the list of bans that its hook received.
func hooked(t *testing.T, rules ...ratelimit.Rule) (*ratelimit.Limiter, *[]ratelimit.BanRecord) {
	var told []ratelimit.BanRecord
	l := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{OnBan: func(b ratelimit.BanRecord) { told = append(told, b) }})
	return l, &told
}

func TestOnBan(t *testing.T) {
	both := ratelimit.Rule{
		Name: "both", Key: mustKey(t, "client", "user"),
		Limits: []ratelimit.Limit{per(1, time.Minute)},
		Ban:    &ratelimit.Ban{After: 1, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour, Factor: 2},
	}
	hits := ban(t, "hits", ratelimit.Ban{After: 2, Span: time.Minute, For: time.Hour, Extend: true})
	l, told := hooked(t, both, hits)
	expect := func(what string, n int) ratelimit.BanRecord {
		t.Helper()
		if len(*told) != n {
			t.Fatalf("%s: the hook received %d bans, want %d: %+v", what, len(*told), n, *told)
		}
		if n == 0 {
			return ratelimit.BanRecord{}
		}
		return (*told)[n-1]
	}
	key := []string{"203.0.113.9", "ada"}
	start := l.Now()
	take := func(after time.Duration) {
		t.Helper()
		if d := mustRule(l, "both").TakeAt(start.Add(after), 1, key...); d.Err != nil {
			t.Fatal(d.Err)
		}
	}
	take(0)
	take(0)
	if d := mustRule(l, "both").PeekN(start, 1, key...); d.Allowed {
		t.Errorf("a look: %+v", d)
	}
	expect("before the ban, and after a look", 0)
	take(time.Second)
	b := expect("a ban began", 1)
	if b.Rule != "both" || !slices.Equal(b.Key, []string{"203.0.113.9", "ada"}) || b.Count != 1 || b.Source != "rule" ||
		b.Reason != "more than 1 refusal in 1m" || !b.Since.Equal(start.Add(time.Second).Round(0)) || b.Until.Sub(b.Since) != time.Hour {
		t.Errorf("the hook received %+v", b)
	}
	listed := slices.Collect(func(yield func(ratelimit.BanRecord) bool) {
		for b, err := range l.Bans().All() {
			if err != nil || !yield(b) {
				return
			}
		}
	})
	if len(listed) != 1 || fmt.Sprint(listed[0]) != fmt.Sprint(b) {
		t.Errorf("the hook received %+v, listed are %+v", b, listed)
	}
	take(2 * time.Second)
	expect("during the ban", 1)
	must.Get(l.Bans().Remove("both", b.Key...))(t)
	expect("a ban unbanned", 1)

	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "hits", Key: []string{"k"}, Until: start.Add(time.Hour)}))
	must.Do(t, l.Internal().RestoreBan(ratelimit.BanRecord{Rule: "hits", Key: []string{"j"}, Until: start.Add(time.Hour)}))
	for range 3 {
		mustRule(l, "hits").TakeAt(start, 1, "k") // one by hand is not extended
	}
	expect("bans added, not begun", 1)
	for range 3 {
		mustRule(l, "hits").TakeAt(start, 1, "i")
	}
	if b := expect("a ban after hits", 2); b.Reason != "more than 2 hits in 1m" || b.Until.Sub(b.Since) != time.Hour {
		t.Errorf("the hook received %+v", b)
	}
	mustRule(l, "hits").TakeAt(start, 1, "i")
	expect("a hit at the same moment", 2)
	mustRule(l, "hits").TakeAt(start.Add(time.Minute), 1, "i")
	if b := expect("a ban made longer", 3); b.Until.Sub(b.Since) != time.Hour+time.Minute || b.Count != 1 {
		t.Errorf("the hook received %+v", b)
	}
	mustRule(l, "hits").PeekN(start.Add(2*time.Minute), 1, "i")
	expect("a look during a ban", 3)
}

// TestOnBanMayCall calls the limiter from its hook: nothing is locked.
func TestOnBanMayCall(t *testing.T) {
	var l *ratelimit.Limiter
	calls := 0
	set := mustSet(t, ban(t, "a", ratelimit.Ban{After: 0, Span: time.Minute, For: time.Hour}))
	l = mustLimiter(t, set, ratelimit.Config{OnBan: func(b ratelimit.BanRecord) {
		if calls++; calls > 1 {
			return
		}
		for range l.Bans().All() {
		}
		if d := takeKey(l, b.Key[0]); d.Allowed {
			t.Errorf("the key that is banned is allowed: %+v", d)
		}
		if held, err := l.Bans().Remove(b.Rule, b.Key...); !held || err != nil {
			t.Errorf("unbanned %v, %v", held, err)
		}
		if err := l.Update(set); err != nil {
			t.Error(err)
		}
	}})
	if d := takeKey(l, "k"); d.Allowed || d.BannedUntil.IsZero() {
		t.Errorf("the event that began the ban: %+v", d)
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// TestConcurrentOnBanReceivesEach bans from many goroutines: the hook receives each ban once.
func TestConcurrentOnBanReceivesEach(t *testing.T) {
	var mu sync.Mutex
	told := map[string]int{}
	l := mustLimiter(t, mustSet(t, ban(t, "r", ratelimit.Ban{After: 3, Span: time.Hour, For: time.Hour})), ratelimit.Config{
		OnBan: func(b ratelimit.BanRecord) {
			mu.Lock()
			defer mu.Unlock()
			told[b.Key[0]]++
		},
	})
	const keys = 200
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range keys * 4 {
				takeKey(l, fmt.Sprint("k", i%keys))
			}
		})
	}
	wg.Wait()
	if len(told) != keys {
		t.Errorf("the hook received %d keys, %d were banned", len(told), keys)
	}
	for key, n := range told {
		if n != 1 {
			t.Errorf("the hook ran %d times for %s", n, key)
		}
	}
}

// A hook passes bans on: to a firewall, a journal, or other processes.
func ExampleConfig_onBan() {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "login", Key: match.MustKey("client"), Ban: &ratelimit.Ban{After: 2, Span: time.Minute, For: time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{OnBan: func(b ratelimit.BanRecord) {
		fmt.Printf("%s: %s is banned for %v: %s\n", b.Rule, b.Key[0], b.Until.Sub(b.Since), b.Reason)
	}})
	if err != nil {
		log.Fatal(err)
	}
	var e match.Event
	e.SetString(match.Client, "203.0.113.9")
	for range 5 {
		limiter.Take(&e)
	}
	// Output:
	// login: 203.0.113.9 is banned for 1h0m0s: more than 2 hits in 1m
}
