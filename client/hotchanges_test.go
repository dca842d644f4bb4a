package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// A changeLoop is a loop over HotChanges that keeps the changes.
type changeLoop struct {
	mu   sync.Mutex // locked to make the loop slow
	t    *testing.T
	hot  map[string]bool
	told []string
}

func startLoop(t *testing.T, f *Fleet) *changeLoop {
	t.Helper()
	l := &changeLoop{t: t, hot: make(map[string]bool)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for c := range f.HotChanges(ctx) {
			l.take(c)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l
}

func (l *changeLoop) take(c HotChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hot[c.Key] == c.Hot {
		l.t.Errorf("%+v comes twice", c)
	}
	if l.hot[c.Key] = c.Hot; !c.Hot {
		delete(l.hot, c.Key)
	}
	l.told = append(l.told, fmt.Sprint(c.Key, " ", c.Hot))
}

// keys returns the keys that are hot for the loop.
func (l *changeLoop) keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.hot))
}

func (l *changeLoop) want(what string, keys ...string) {
	l.t.Helper()
	until(l.t, what, func() bool { return slices.Equal(l.keys(), keys) })
}

// begins has watchers of n begin with these keys.
func (n *scriptedNode) begins(instance string, version uint64, ttl time.Duration, keys ...string) {
	u := update(0, version, keys...)
	u.Reset, u.Instance = true, instance
	for i := range u.Hot {
		u.Hot[i].TTL = api.MillisOf(ttl)
	}
	text := must.Get(json.Marshal(u))(n.t)
	n.change(func() { n.first = string(text) })
}

// TestHotChanges checks that each key that becomes hot or cold is reported once, also over lost
// connections.
func TestHotChanges(t *testing.T) {
	n, f, _ := newScripted(t)
	l := startLoop(t, f)
	n.tell(update(0, 1, "/a", "/b"))
	l.want("two keys are hot", "/a", "/b")
	n.tell(update(1, 2, "/a")) // for longer
	cold := update(2, 3, "/c")
	cold.Cold = ruleKeys("/b")
	n.tell(cold)
	l.want("one is cold", "/a", "/c")
	late := startLoop(t, f)
	late.want("a loop that begins later has both", "/a", "/c")

	n.begins("i", 9, time.Minute, "/c", "/d")
	n.tell(update(5, 6, "/lost"))
	l.want("after a gap, the state is that of the node", "/c", "/d")
	n.begins("j", 1, time.Minute, "/e")
	n.kill()
	n.revive()
	l.want("a node that was started again ends no hold", "/c", "/d", "/e")
	short := update(1, 2, "/f")
	short.Instance, short.Hot[0].TTL = "j", 1
	n.tell(short)
	until(t, "/f is hot", func() bool { return slices.Contains(l.keys(), "/f") })
	n.kill() // only the node can extend the hold of /f
	l.want("a hold is over, and no node knows", "/c", "/d", "/e")
	late.want("each loop has all changes", "/c", "/d", "/e")
	f.Close()
}

// TestHotChangesOfASlowLoop leaves out pairs of changes while the loop is busy, and nothing else.
func TestHotChangesOfASlowLoop(t *testing.T) {
	n, f, d := newScripted(t)
	l := startLoop(t, f)
	n.tell(update(0, 1, "/a", "/b"))
	l.want("two keys are hot", "/a", "/b")
	l.mu.Lock()
	told := len(l.told)
	n.tell(update(1, 2, "/busy"))
	for v := uint64(2); v < 100; v += 2 {
		u := update(v, v+1, "/c", fmt.Sprint("/once/", v))
		u.Cold = ruleKeys("/b")
		n.tell(u)
		u = update(v+1, v+2, "/b")
		u.Cold = ruleKeys("/c", fmt.Sprint("/once/", v))
		n.tell(u)
	}
	last := update(100, 101, "/c", "/last")
	last.Cold = ruleKeys("/a")
	n.tell(last)
	until(t, "the last change has come", func() bool { return isHot(d, "/last") })
	l.mu.Unlock()
	l.want("the loop has caught up", "/b", "/busy", "/c", "/last")
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := len(l.told) - told; got > 12 { // some pairs may come before the loop is busy
		t.Errorf("the loop received %d changes: %q", got, l.told[told:])
	}
}

// TestHotChangesModel has two nodes whose keys become hot and cold, which are killed, and whose updates get lost, at
// random. In the end the loop has the keys of the nodes.
func TestHotChangesModel(t *testing.T) {
	rnd := randtest.New(t)
	nodes := []*scriptedNode{startScripted(t), startScripted(t)}
	f, d := hotFleet(t, FleetConfig{Nodes: []string{nodes[0].addr, nodes[1].addr}, Timeout: 200 * time.Millisecond})
	l := startLoop(t, f)
	state := []map[string]bool{{}, {}}
	versions := []uint64{0, 0}
	for step := range 300 {
		i := rnd.IntN(2)
		n, v := nodes[i], versions[i]
		key := fmt.Sprint("/", rnd.IntN(8))
		u := update(v, v+1)
		if state[i][key] {
			u.Cold = ruleKeys(key)
			delete(state[i], key)
		} else {
			u = update(v, v+1, key)
			state[i][key] = true
		}
		versions[i]++
		n.begins("i", versions[i], time.Minute, slices.Sorted(maps.Keys(state[i]))...)
		if rnd.IntN(20) > 0 { // else it is lost, which the next one shows
			n.tell(u)
		}
		if step%100 == 50 {
			n.kill()
			n.revive()
		}
	}
	for i, n := range nodes {
		n.begins("i", versions[i]+1, time.Minute, slices.Sorted(maps.Keys(state[i]))...)
		n.tell(update(versions[i]+7, versions[i]+8)) // a gap
	}
	want := maps.Clone(state[0])
	maps.Copy(want, state[1])
	l.want("the loop knows what the nodes say", slices.Sorted(maps.Keys(want))...)
	for key := range want {
		if !isHot(d, key) {
			t.Errorf("%s is not hot in the Detector", key)
		}
	}
}

// TestHotChangesWithoutDetector ends at once.
func TestHotChangesWithoutDetector(t *testing.T) {
	f := mustFleet(t, FleetConfig{Nodes: []string{"127.0.0.1:1"}})
	for c := range f.HotChanges(t.Context()) {
		t.Errorf("%+v", c)
	}
}
