package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestPeekSeesOnlyItsOwnKeys adds keys during a Peek under two rules for an event without records: Peek repeats its lookup
// if one of the added keys is its own, also if another is removed at the same time, and does not for other keys.
func TestPeekSeesOnlyItsOwnKeys(t *testing.T) {
	key := match.MustKey("client")
	set := must.Get(NewSet(SetConfig{},
		Rule{Name: "a", Key: key, Limits: []Limit{{N: 5, Span: time.Minute}}},
		Rule{Name: "b", Key: key, Limits: []Limit{{N: 5, Span: time.Minute}}}))(t)
	for _, c := range []struct {
		name          string
		added, remove string
		again         bool
	}{
		{"nothing", "", "", false},
		{"its own key", "k", "", true},
		{"its own key, and another is removed", "k", "there", true},
		{"another key", "other", "", false},
	} {
		m := must.Get(NewMemory(set, Config{}))(t)
		table := m.rules.Load().rules[1].records.table
		add := func(key string) {
			r, _ := table.LockOrAdd(table.Hash(key), key)
			r.Unlock()
		}
		add("there")
		r := &request{Set: set, Now: 1e18, Cost: 1, Peek: true, Subjects: []subject{{Key: []byte("k")}, {Key: []byte("k"), Outcome: outcome{Rule: 1}}}}
		probes := make([]probe, 2)
		if err := m.probe(m.rules.Load(), r, probes); err != nil || !lock(probes, r) {
			t.Fatal(err)
		}
		if c.added != "" {
			add(c.added)
		}
		if c.remove != "" {
			table.Remove(table.Hash(c.remove), c.remove)
		}
		if got := grown(probes); got != c.again {
			t.Errorf("%s is added: looks again: %v", fmt.Sprint(c.name), got)
		}
		unlock(probes)
	}
}
