package hotkey_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
)

func isHotAt(d *hotkey.Detector, t time.Time, rule, key string) bool {
	_, hot := d.HotAt(t, rule, key)
	return hot
}

func isHot(d *hotkey.Detector, rule, key string) bool {
	_, hot := d.Hot(rule, key)
	return hot
}

// addKey is Detector.AddKeyN under a rule that exists.
func addKey(d *hotkey.Detector, t time.Time, rule, key string) (hotkey.Edge, bool) {
	edge, hot, err := d.AddKeyN(t, rule, key, 1)
	if err != nil && err != hotkey.ErrNever && err != hotkey.ErrNoMemory {
		panic(err)
	}
	return edge, hot
}

func TestUnknownRule(t *testing.T) {
	d := mustDetector(t, goodRule(t))
	for _, name := range []string{"", "R", "other"} {
		if edge, hot, err := d.AddKey(name, "k"); hot || edge != (hotkey.Edge{}) || err == nil || !strings.Contains(err.Error(), "unknown rule") {
			t.Errorf("AddKey under %q: %+v, %t, %v", name, edge, hot, err)
		}
		if _, hot, err := d.AddKeyN(at(0), name, "k", 1); hot || err == nil {
			t.Errorf("AddKeyAt under %q: %t, %v", name, hot, err)
		}
		if isHot(d, name, "k") || isHotAt(d, at(0), name, "k") || d.Stats(name) != (hotkey.Stats{}) {
			t.Errorf("something is known under %q", name)
		}
	}
	if got := d.Stats("r"); got.Keys != 0 {
		t.Errorf("%+v", got)
	}
}

// AddKey and Hot are about now.
func TestAddKeyIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDetector(t, goodRule(t)) // 3 in 1 s, for 1 min
		for i := range 4 {
			edge, hot, err := d.AddKey("r", "/p")
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

// addKeyN is Detector.AddKeyN under a rule that exists.
func addKeyN(d *hotkey.Detector, t time.Time, rule, key string, n uint64) (hotkey.Edge, bool) {
	edge, hot, err := d.AddKeyN(t, rule, key, n)
	if err != nil && err != hotkey.ErrNever && err != hotkey.ErrNoMemory {
		panic(err)
	}
	return edge, hot
}

// AddKeyN says of a key that is hot already until when, and nothing else.
func TestAddKeyOfAHotKey(t *testing.T) {
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
