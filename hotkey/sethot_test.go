package hotkey_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/test/must"
)

// A key that is made hot is so until the time, counts meanwhile, and becomes hot by its
// events afterwards.
func TestSetHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := goodRule(t) // 3 in 1 s, for 1 min
		r.Always, r.Never = []string{"/always"}, []string{"/never"}
		d := mustDetector(t, r)
		if err := under(d, "r").SetHot("/p", time.Now().Add(time.Hour)); err != nil || !isHot(d, "r", "/p") {
			t.Fatalf("%v, hot %t", err, isHot(d, "r", "/p"))
		}
		must.Do(t, under(d, "r").SetHot("/p", time.Now().Add(time.Second)))
		time.Sleep(time.Hour - 500*time.Millisecond)
		for range 5 {
			if _, hot := addKey(d, time.Now(), "r", "/p"); hot {
				t.Error("an edge while it is hot")
			}
		}
		if k, hot := under(d, "r").Hot("/p"); !hot || k.Lo != 5 {
			t.Errorf("%+v, %t", k, hot)
		}
		time.Sleep(500 * time.Millisecond)
		if isHot(d, "r", "/p") {
			t.Error("hot after the time")
		}
		if edge, hot := addKey(d, time.Now(), "r", "/p"); !hot || edge.Lo != 6 {
			t.Errorf("no edge of the sixth event in the span: %+v", edge)
		}
		for key, want := range map[string]error{"/always": nil, "/never": hotkey.ErrNever} {
			if err := under(d, "r").SetHot(key, time.Now()); !errors.Is(err, want) {
				t.Errorf("SetHot of %s: %v", key, err)
			}
		}
	})
}

func TestSetNever(t *testing.T) {
	r := goodRule(t)
	r.Always, r.Never = []string{"/always"}, []string{"/never"}
	d := mustDetector(t, r)
	for range 3 {
		addKey(d, at(0), "r", "/p")
	}
	if !isHotAt(d, at(0), "r", "/p") {
		t.Fatal("not hot")
	}
	if err := under(d, "r").SetNever("/p", true); err != nil || isHotAt(d, at(0), "r", "/p") {
		t.Errorf("%v, hot %t", err, isHotAt(d, at(0), "r", "/p"))
	}
	if _, hot, err := under(d, "r").AddAt(at(0), "/p", 100); hot || err != hotkey.ErrNever {
		t.Errorf("a key that is never counted: %t, %v", hot, err)
	}
	if err := under(d, "r").SetNever("/p", false); err != nil {
		t.Error(err)
	}
	if k, hot := under(d, "r").HotAt(at(0), "/p"); hot || k.Lo != 0 {
		t.Errorf("it begins with %+v, %t", k, hot)
	}
	if _, hot, err := under(d, "r").AddAt(at(0), "/p", 3); !hot || err != nil {
		t.Errorf("it does not become hot again: %v", err)
	}
	for _, key := range []string{"/always", "/never"} {
		for _, never := range []bool{true, false} {
			if under(d, "r").SetNever(key, never) == nil {
				t.Errorf("SetNever of %s, which the rule lists, is accepted", key)
			}
		}
	}
}

// AddAt returns an error when it counts nothing for lack of memory: here for keys longer than the memory left by the
// others.
func TestAddAtWithoutMemory(t *testing.T) {
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{goodRule(t)}, hotkey.DetectorConfig{Budget: leastBudget}))(t)
	refused := uint64(0)
	for i := range 5000 {
		key := fmt.Sprint(i, strings.Repeat("k", i%2*250))
		if _, _, err := under(d, "r").AddAt(at(0), key, 3); errors.Is(err, hotkey.ErrNoMemory) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if s := under(d, "r").Stats(); refused != s.Refused || refused == 0 {
		t.Errorf("%d errors, %d refused", refused, s.Refused)
	}
}
