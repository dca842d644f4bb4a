package hotkeys

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// A replica is the state of a watcher, by the rules of the protocol alone.
type replica struct {
	t       testing.TB
	rule    string
	w       *Watcher
	version uint64
	begun   bool              // it has had a reset
	inside  bool              // the last message had more
	hot     map[string]string // each key with the version of its value
	loads   map[string]uint64 // the version of the value that it has loaded
	resets  int
}

func keyName(rule string, key api.Key) string { return rule + "/" + strings.Join(key.Values(), ",") }

// apply applies one message, or reports why it cannot.
func (r *replica) apply(text []byte) error {
	var u api.HotUpdate
	if err := json.Unmarshal(text, &u); err != nil {
		return err
	}
	again, err := json.Marshal(&u)
	if err != nil || string(again) != string(text) {
		return fmt.Errorf("the message differs from api.HotUpdate:\n%s\n%s", text, again)
	}
	switch {
	case u.Reset:
		r.hot, r.begun, r.inside = map[string]string{}, true, false
		r.resets++
	case !r.begun, !r.inside && u.From != r.version:
		return fmt.Errorf("an update from %d for the version %d", u.From, r.version)
	}
	if u.Rule != r.rule {
		return fmt.Errorf("an update of rule %q for a watcher of %q", u.Rule, r.rule)
	}
	for _, k := range u.Hot {
		if (k.TTL == 0) != k.Until.IsZero() {
			return fmt.Errorf("ttl_ms and until do not agree: %s", text)
		}
		r.hot[keyName(k.Rule, k.Key)] = fmt.Sprint(k.Until.UnixNano())
		r.loads[keyName(k.Rule, k.Key)] = max(r.loads[keyName(k.Rule, k.Key)], k.Changed)
	}
	for _, k := range u.Cold {
		delete(r.hot, keyName(k.Rule, k.Key))
	}
	for _, k := range u.Changed {
		r.loads[keyName(k.Rule, k.Key)] = u.Version
	}
	if r.inside = u.More; !u.More {
		r.version = u.Version
	}
	return nil
}

// read applies up to n updates, and drops some messages if lossy, which it notices.
func (r *replica) read(rnd *rand.Rand, n int, lossy bool) {
	for ; n > 0; n-- {
		u := r.w.Next()
		if u == nil {
			return
		}
		for _, part := range u.Parts() {
			if lossy && rnd.IntN(5) == 0 {
				continue
			}
			if err := r.apply(part); err != nil {
				if !lossy {
					r.t.Fatal(err)
				}
				r.again()
				break
			}
		}
		if lossy && (r.inside || !r.begun || r.version != u.version) {
			r.again()
		}
	}
}

// again watches again, as a client that was disconnected.
func (r *replica) again() {
	r.w.Close()
	r.w = r.w.l.watch(r.rule)
	r.begun, r.inside, r.version = false, false, 0
}

// want compares r with the list.
func (r *replica) want(l *hotList) error {
	want := map[string]string{}
	for _, k := range l.all(r.rule) {
		name := keyName(k.Rule, k.Key)
		want[name] = fmt.Sprint(k.HotKey(time.Now()).Until.UnixNano())
		if r.loads[name] < k.Changed {
			return fmt.Errorf("%s: the value of version %d was loaded, and it changed in %d", name, r.loads[name], k.Changed)
		}
	}
	if !maps.Equal(r.hot, want) {
		return fmt.Errorf("watcher of %q at version %d has %d keys: %v\nthe list has %d: %v", r.rule, r.version, len(r.hot), r.hot, len(want), want)
	}
	return nil
}

// A fault makes a list that the model must catch.
type fault func(*hotList)

func inForce(*entry) bool { return true }

// simulate makes random changes to a list and has watchers read them slowly, join late, and lose messages. At each quiet
// point every watcher must have the list.
func simulate(t testing.TB, seed uint64, steps int, inject fault) (err error) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	stop := make(chan struct{})
	defer synctest.Wait()
	defer close(stop)
	var mu sync.Mutex // of busy
	busy := map[string]bool{}
	l := newHotList(int64(20_000+rnd.IntN(200_000)), time.Now, inForce, func(e *entry) bool {
		mu.Lock()
		defer mu.Unlock()
		return busy[e.ID]
	})
	go l.run(stop)
	rules := []string{"a", "b", "c"}
	var all []*replica
	for step := range steps {
		rule, key := rules[rnd.IntN(3)], fmt.Sprint("k", rnd.IntN(150))
		hold := time.Duration(100+rnd.IntN(2000)) * time.Millisecond
		e := entry{Rule: rule, ID: key, Key: api.KeyOf(key + strings.Repeat("-", rnd.IntN(3)*500)), Since: time.Now(), Until: time.Now().Add(hold), Hold: hold}
		switch rnd.IntN(20) {
		case 0, 1, 2, 3, 4, 5, 6, 7, 8:
			e.Key = api.KeyOf(key)
			l.add(e)
		case 9:
			l.remove(rule, key)
		case 10, 11:
			l.changed(rule, key)
		case 12:
			mu.Lock()
			busy[key] = !busy[key]
			mu.Unlock()
		case 13:
			e.Until, e.Key = time.Time{}, api.KeyOf(key)
			if len(l.all("")) < 20 {
				l.add(e)
			}
		case 14:
			if len(all) < 12 {
				r := &replica{t: t, rule: []string{"", "a", "b"}[rnd.IntN(3)], hot: map[string]string{}, loads: map[string]uint64{}}
				r.w = l.watch(r.rule)
				all = append(all, r)
			}
		case 15:
			if len(all) > 0 && rnd.IntN(4) == 0 {
				i := rnd.IntN(len(all))
				all[i].w.Close()
				all = slices.Delete(all, i, i+1)
			}
		default:
			time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
		}
		for i, r := range all {
			if rnd.IntN(1+i) == 0 { // the later, the slower
				r.read(rnd, 1, i%3 == 2)
			}
		}
		if inject != nil && rnd.IntN(50) == 0 {
			inject(l)
		}
		if step%97 == 96 {
			if err := quiet(rnd, l, all); err != nil {
				return fmt.Errorf("seed %d, step %d: %w", seed, step, err)
			}
		}
	}
	for _, r := range all {
		r.w.Close()
	}
	if s, _ := l.statistics(); s.Watchers != 0 || s.ListBytes > l.budget {
		return fmt.Errorf("seed %d: %+v", seed, s)
	}
	return nil
}

// quiet waits until nothing changes for a moment, has all watchers read, and compares.
func quiet(rnd *rand.Rand, l *hotList, all []*replica) error {
	for {
		l.all("")
		synctest.Wait()
		time.Sleep(leastPause)
		synctest.Wait()
		for _, r := range all {
			r.read(rnd, 1000, false)
		}
		l.lock()
		fresh := l.version == l.published.Load()
		for _, r := range all { // Run may have published since they have read
			fresh = fresh && r.w.seen == l.version
		}
		l.unlock()
		if fresh {
			break
		}
	}
	for _, r := range all {
		if err := r.want(l); err != nil {
			return err
		}
	}
	return nil
}

func TestModel(t *testing.T) {
	seed, runs, steps := randtest.Seed(t), 6, 1000
	if testing.Short() {
		runs, steps = 2, 500
	}
	if os.Getenv("LATELY_LONG") == "1" {
		runs, steps = 200, 4000
	}
	t.Logf("seed %d", seed)
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			must.Do(t, simulate(t, seed+uint64(i), steps, nil))
		})
	}
}

// The model finds lists with a fault.
func TestModelControl(t *testing.T) {
	for name, inject := range map[string]fault{
		"a change without its place in the order": func(l *hotList) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, n := range l.nodes {
				if n.hot && !n.always() {
					l.cool(n)
					l.order.MoveToFront(n.order)
					return
				}
			}
		},
		"a key that is dropped without a change": func(l *hotList) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for i, n := range l.nodes {
				if n.hot && n.place < 0 {
					l.order.Remove(n.order)
					delete(l.nodes, i)
					return
				}
			}
		},
		"a changed value that is not told": func(l *hotList) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, n := range l.nodes {
				if n.hot && n.place < 0 {
					n.Changed = l.version + 1
					return
				}
			}
		},
		"changes that are no longer known, as if they were": func(l *hotList) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for l.cold.Len() > 0 {
				known := l.known
				l.evict()
				l.known = known
			}
		},
	} {
		found := false
		for seed := uint64(0); seed < 30 && !found; seed++ {
			synctest.Test(t, func(t *testing.T) { found = simulate(t, seed, 500, inject) != nil })
		}
		if !found {
			t.Errorf("the model does not find %s", name)
		}
	}
}
