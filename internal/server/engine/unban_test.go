package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// banSome bans keys of two rules by hand.
func banSome(t *testing.T, e *engine.Engine) {
	t.Helper()
	for _, b := range []struct {
		rule string
		key  []string
	}{
		{"per-client", []string{"192.0.2.1"}},
		{"per-client", []string{"192.0.2.200"}},
		{"per-client", []string{"198.51.100.1"}},
		{"per-client", []string{"2001:db8::1"}},
		{"login", []string{"192.0.2.1", "root"}},
		{"login", []string{"198.51.100.1", "a\tb"}},
		{"flood", []string{"root"}},
	} {
		must.Get(e.Bans().Ban(b.rule, b.key, time.Hour, "", ""))(t)
	}
}

func banned(t *testing.T, e *engine.Engine) (list []string) {
	t.Helper()
	for r, err := range e.Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Rule+" "+strings.Join(r.Values(), ","))
	}
	slices.Sort(list)
	return list
}

// UnbanAll ends the bans that its filter selects, and no other.
func TestUnbanAll(t *testing.T) {
	all := []string{
		"flood root", "login 192.0.2.1,root", "login 198.51.100.1,a\tb",
		"per-client 192.0.2.1", "per-client 192.0.2.200", "per-client 198.51.100.1", "per-client 2001:db8::/64",
	}
	for _, c := range []struct {
		rule, pattern, network string
		ended                  []int // of all
	}{
		{"login", "", "", []int{1, 2}},
		{"", "*", "", []int{0, 1, 2, 3, 4, 5, 6}},
		{"", "root", "", []int{0, 1}},
		{"", "192.0.2.*", "", []int{1, 3, 4}},
		{"per-client", "192.0.2.?", "", []int{3}},
		{"", "", "192.0.2.0/24", []int{1, 3, 4}},
		{"per-client", "", "192.0.2.0/25", []int{3}},
		{"", "", "::ffff:192.0.2.1", []int{1, 3}},
		{"", "", "2001:db8::/32", []int{6}},
		{"", "", "2001:db8::/65", nil}, // the ban is of more than the network
		{"", "", "0.0.0.0/0", []int{1, 2, 3, 4, 5}},
		{"", "198.51.100.1\ta\tb", "", []int{2}},
		{"flood", "", "192.0.2.0/24", nil},
	} {
		e := newEngine(t, someRules)
		banSome(t, e)
		if got := banned(t, e); !slices.Equal(got, all) {
			t.Fatalf("%q", got)
		}
		n, err := e.Bans().UnbanAll(api.BanFilter{Rule: c.rule, Pattern: c.pattern, Network: c.network})
		var want []string
		for i := range all {
			if !slices.Contains(c.ended, i) {
				want = append(want, all[i])
			}
		}
		if got := banned(t, e); err != nil || n != len(c.ended) || !slices.Equal(got, want) {
			t.Errorf("%+v: %d, %v: %q left; want %q", c, n, err, got, want)
		}
	}
	e := newEngine(t, someRules)
	_, err := e.Bans().UnbanAll(api.BanFilter{Rule: "logn"})
	wantCode(t, err, api.NoRule, "logn")
	for _, c := range [][4]string{
		{"", "", "", "filter: missing: must be"},
		{"", "", "192.0.2.1/24", `network: "192.0.2.1/24": must be`},
		{"", strings.Repeat("*", 1025), "", "pattern: too long"},
	} {
		_, err := e.Bans().UnbanAll(api.BanFilter{Rule: c[0], Pattern: c[1], Network: c[2]})
		wantCode(t, err, api.BadArg, c[3])
	}
}

// More bans than a batch, ended together, stay ended over a restart, and
// subscribers receive an event for each.
func TestUnbanAllSurvives(t *testing.T) {
	path := t.TempDir()
	j := engine.OpenJournal(t, path, nil)
	e := newEngine(t, someRules)
	e.Bans().Journal(j)
	const many = 300
	for i := range many {
		must.Get(e.Bans().Ban("flood", []string{fmt.Sprint("u", i)}, time.Hour, "", ""))(t)
	}
	banSome(t, e)
	sub := e.Subscribe()
	defer sub.Close()
	if n, err := e.Bans().UnbanAll(api.BanFilter{Rule: "flood"}); n != many+1 || err != nil {
		t.Fatal(n, err)
	}
	if n := told(sub); n != many+1 {
		t.Errorf("%d were published; want %d", n, many+1)
	}
	want := banned(t, e)
	must.Do(t, j.Close())
	after := newEngine(t, someRules)
	engine.OpenJournal(t, path, after.Restorer().Record)
	if got := banned(t, after); !slices.Equal(got, want) {
		t.Errorf("after a restart %q; want %q", got, want)
	}
}
