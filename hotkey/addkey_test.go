package hotkey_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"

	"github.com/lately-go/lately/internal/test/must"
)

func isHotAt(d *hotkey.Detector, t time.Time, rule, key string) bool {
	_, hot := under(d, rule).HotAt(t, key)
	return hot
}

func isHot(d *hotkey.Detector, rule, key string) bool {
	_, hot := under(d, rule).Hot(key)
	return hot
}

// addKey is RuleDetector.AddAt for one event.
func addKey(d *hotkey.Detector, t time.Time, rule, key string) (hotkey.Edge, bool) {
	edge, hot, err := under(d, rule).AddAt(t, key, 1)
	if err != nil && err != hotkey.ErrNever && err != hotkey.ErrNoMemory {
		panic(err)
	}
	return edge, hot
}

func TestUnknownRule(t *testing.T) {
	product := goodRule(t)
	product.Name = "product"
	for _, c := range []struct {
		rules []hotkey.Rule
		name  string
		want  string
	}{
		{[]hotkey.Rule{product}, "prodcut", `hotkey: unknown rule "prodcut": did you mean "product"?`},
		{[]hotkey.Rule{product}, "PRODUCT", `hotkey: unknown rule "PRODUCT": did you mean "product"?`},
		{[]hotkey.Rule{product}, "", `hotkey: unknown rule "": must be one of ["product"]`},
		{nil, strings.Repeat("x", 100), `hotkey: unknown rule "` + strings.Repeat("x", 64) + `": there are no rules`},
	} {
		d := must.Get(hotkey.New(c.rules...))(t)
		if r, err := d.Rule(c.name); r != nil || err == nil || err.Error() != c.want {
			t.Errorf("Rule(%q): %v, %v, want %s", c.name, r, err, c.want)
		}
	}
	d := mustDetector(t, goodRule(t))
	if testing.AllocsPerRun(100, func() { _, _ = d.Rule("r") }) > 0 {
		t.Error("Rule allocates")
	}
}

// Add and Hot are about now.
func TestRuleAddIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, goodRule(t)) // 3 in 1 s, for 1 min
		for i := range 4 {
			edge, hot, err := under(d, "r").Add("/p")
			if hot != (i == 2) || err != nil || hot && (edge.Rule != "r" || edge.Key != "/p" || !edge.Time.Equal(time.Now())) {
				t.Errorf("event %d: %+v, %t, %v", i+1, edge, hot, err)
			}
			if isHot(d, "r", "/p") != (i >= 2) {
				t.Errorf("event %d: hot is %t", i+1, isHot(d, "r", "/p"))
			}
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if !isHot(d, "r", "/p") || isHot(d, "r", "/q") {
			t.Error("not hot at the end of the hold")
		}
		time.Sleep(time.Nanosecond)
		if isHot(d, "r", "/p") {
			t.Error("hot after the hold")
		}
	})
}

// addKeyN is RuleDetector.AddAt.
func addKeyN(d *hotkey.Detector, t time.Time, rule, key string, n uint64) (hotkey.Edge, bool) {
	edge, hot, err := under(d, rule).AddAt(t, key, n)
	if err != nil && err != hotkey.ErrNever && err != hotkey.ErrNoMemory {
		panic(err)
	}
	return edge, hot
}

// For a key that is hot already, AddAt returns the end of the hold, and nothing else.
func TestAddAtOfAHotKey(t *testing.T) {
	d := mustDetector(t, goodRule(t)) // 3 in 1 s, for 1 min
	until := at(0).Add(time.Minute)
	for i, want := range []time.Time{{}, {}, until, until} {
		edge, hot := addKey(d, at(0), "r", "/p")
		if hot != (i == 2) || !edge.Until.Equal(want) || !hot && edge != (hotkey.Edge{Until: edge.Until}) {
			t.Errorf("event %d: %+v, %t; want until %v", i+1, edge, hot, want)
		}
	}
	if edge, hot := addKey(d, until, "r", "/p"); hot || edge != (hotkey.Edge{}) {
		t.Errorf("after the hold: %+v, %t", edge, hot)
	}
}
