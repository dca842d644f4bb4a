package hotlist

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
)

// A watch begins with what was added before it, published or not; watchers at the same
// version share one update; and a watcher of another rule is told nothing.
func TestWatchersShareUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer synctest.Wait()
		defer close(stop)
		l := New(Config{Budget: 1 << 20, Now: time.Now})
		add := func(rule, key string) {
			l.Add(Entry{Rule: rule, ID: key, Key: api.KeyOf(key), Since: time.Now(), Until: time.Now().Add(time.Hour)})
		}
		add("a", "1")
		var all []*Watcher
		for i := range 100 {
			w := l.Watch("")
			defer w.Close()
			u := w.Next()
			if u == nil || len(u.Parts()) != 1 || !u.reset || u.version != 1 {
				t.Fatalf("watcher %d begins with %+v", i, u)
			}
			all = append(all, w)
		}
		other := l.Watch("b")
		defer other.Close()
		other.Next()
		go l.Run(stop)
		add("a", "2")
		time.Sleep(leastPause) // Run may have begun before, and pauses then
		synctest.Wait()
		for i, w := range all {
			select {
			case <-w.Wait():
			default:
				t.Fatalf("watcher %d is not woken", i)
			}
			if u := w.Next(); u == nil || i > 0 && &u.Parts()[0][0] != &l.updates[span{"", 1, 1}].Parts()[0][0] || w.Next() != nil {
				t.Fatalf("watcher %d has an update of its own: %+v", i, u)
			}
		}
		if u := other.Next(); u != nil {
			t.Errorf("a watcher of another rule is told %s", u.Parts())
		}
		add("b", "1")
		time.Sleep(time.Second)
		if u := other.Next(); u == nil || u.from != 1 || u.version != 3 {
			t.Errorf("the next update of another rule is %+v; want one from the version that it has", u)
		}
		if s := l.Stats(); s.Resets != 101 || s.Updates != 101 || s.Watchers != 101 || s.Hot["a"] != 2 || s.Hot["b"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// The keys of a list, hot or not, stay within the budget, and those that end last are kept.
func TestBudget(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := New(Config{Budget: 100_000, Now: func() time.Time { return now }})
	for i := range 10_000 {
		until := now.Add(time.Duration(i%1000+1) * time.Second)
		l.Add(Entry{Rule: "r", ID: fmt.Sprint(i), Key: api.KeyOf(fmt.Sprint(i)), Since: now, Until: until})
		if i%100 == 0 {
			l.Remove("r", fmt.Sprint(i-50))
		}
	}
	s := l.Stats()
	if s.Bytes > 100_000 || s.Hot["r"] < 100 || s.Dropped == 0 || uint64(s.Hot["r"])+s.Dropped < 9_800 {
		t.Errorf("%+v", s)
	}
	for _, k := range l.All("") {
		if left := k.Until.Sub(now); left < 800*time.Second && k.ID != "9999" && k.joined < 9_000 {
			t.Errorf("%s is kept, which ends in %v", k.ID, left)
		}
	}
}
