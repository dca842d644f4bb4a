package hotkeys

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
)

func idle(*entry) bool { return false }

// A watch begins with everything added before it, published or not; watchers at the same version share one update; and a
// watcher of another rule receives nothing.
func TestWatchersShareUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer synctest.Wait()
		defer close(stop)
		l := newHotList(1<<20, time.Now, inForce, idle)
		add := func(rule, key string) {
			l.add(entry{Rule: rule, ID: key, Key: api.KeyOf(key), Since: time.Now(), Until: time.Now().Add(time.Hour)})
		}
		add("a", "1")
		var all []*Watcher
		for i := range 100 {
			w := l.watch("")
			defer w.Close()
			u := w.Next()
			if u == nil || len(u.Parts()) != 1 || !u.reset || u.version != 1 {
				t.Fatalf("watcher %d begins with %+v", i, u)
			}
			all = append(all, w)
		}
		other := l.watch("b")
		defer other.Close()
		other.Next()
		go l.run(stop)
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
			t.Errorf("a watcher of another rule receives %s", u.Parts())
		}
		add("b", "1")
		time.Sleep(time.Second)
		if u := other.Next(); u == nil || u.from != 1 || u.version != 3 {
			t.Errorf("the next update of another rule is %+v; want one from the version that it has", u)
		}
		if s, hot := l.statistics(); s.Resets != 101 || s.Updates != 101 || s.Watchers != 101 || hot["a"] != 2 || hot["b"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// The keys of a list, hot or not, stay within the budget; keys that end last are kept.
func TestBudget(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newHotList(100_000, func() time.Time { return now }, inForce, idle)
	for i := range 10_000 {
		until := now.Add(time.Duration(i%1000+1) * time.Second)
		l.add(entry{Rule: "r", ID: fmt.Sprint(i), Key: api.KeyOf(fmt.Sprint(i)), Since: now, Until: until})
		if i%100 == 0 {
			l.remove("r", fmt.Sprint(i-50))
		}
	}
	s, hot := l.statistics()
	if s.ListBytes > 100_000 || hot["r"] < 100 || s.ListDropped == 0 || uint64(hot["r"])+s.ListDropped < 9_800 {
		t.Errorf("%+v", s)
	}
	for _, k := range l.all("") {
		if left := k.Until.Sub(now); left < 800*time.Second && k.ID != "9999" && k.joined < 9_000 {
			t.Errorf("%s is kept, which ends in %v", k.ID, left)
		}
	}
}
