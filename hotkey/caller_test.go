package hotkey_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestDetectorHasItsOwnRules changes all slices, maps and pointers of a rule after a Detector
// was made: its rule stays, and so does the policy of a Cache that is made later.
func TestDetectorHasItsOwnRules(t *testing.T) {
	r := goodRule(t)
	r.When = match.When{
		Method: []string{"GET"}, Path: []string{"/p"}, Status: []string{"200"},
		Client: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Fields: map[string][]string{"user": {"ada"}},
	}
	r.Always, r.Never = []string{"always"}, []string{"never"}
	r.Cache = &hotkey.CachePolicy{TTL: time.Second}
	d := mustDetector(t, r)
	r.When.Method[0], r.When.Path[0], r.When.Status[0] = "changed", "changed", "changed"
	r.When.Client[0], r.When.Fields["user"][0], r.When.Fields["other"] = netip.Prefix{}, "changed", nil
	r.Always[0], r.Never[0], r.Cache.TTL = "changed", "changed", 0

	got := d.Rules()[0]
	if w := got.When; w.Method[0] != "GET" || w.Path[0] != "/p" || w.Status[0] != "200" ||
		!w.Client[0].IsValid() || w.Fields["user"][0] != "ada" || len(w.Fields) != 1 {
		t.Errorf("when: %+v", w)
	}
	if got.Always[0] != "always" || got.Never[0] != "never" || got.Cache.TTL != time.Second {
		t.Errorf("%+v, cache %+v", got, got.Cache)
	}
	c := must.Get(hotkey.NewCache(d, hotkey.CacheConfig[int]{Rule: "r", Load: func(context.Context, string) (int, error) { return 1, nil }}))(t)
	if v, err := c.Get(t.Context(), "always"); v != 1 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// TestAddNothing adds 0 events, for hot keys and others: it returns until when they are hot, as for an event, and counts
// nothing.
func TestAddNothing(t *testing.T) {
	r := goodRule(t) // 3 in 1 s, for 1 min
	r.Always, r.Never = []string{"always"}, []string{"never"}
	d := mustDetector(t, r)
	for range 3 {
		addKey(d, at(0), "r", "hot")
	}
	for key, until := range map[string]time.Time{"hot": at(60_000), "cold": {}} {
		edge, hot, err := under(d, "r").AddAt(at(1), key, 0)
		if hot || err != nil || !edge.Until.Equal(until) {
			t.Errorf("%s: %+v, %t, %v; want Until %v", key, edge, hot, err, until)
		}
	}
	one, _, _ := under(d, "r").AddAt(at(1), "always", 1)
	if edge, _, err := under(d, "r").AddAt(at(1), "always", 0); err != nil || !edge.Until.Equal(one.Until) || one.Until.IsZero() {
		t.Errorf("a key that is always hot: %+v, %v; with an event %+v", edge, err, one)
	}
	if _, _, err := under(d, "r").AddAt(at(1), "never", 0); err != hotkey.ErrNever {
		t.Errorf("a key that is never counted: %v", err)
	}
	if s := under(d, "r").Stats(); s.Keys != 2 || s.Events != 4 {
		t.Errorf("%+v, want 2 keys and 4 events", s)
	}
}
