package hotkey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

func mustSet(t testing.TB, rules ...hotkey.Rule) *hotkey.Set {
	t.Helper()
	s, err := hotkey.NewSet(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetErrorsNameTheRule(t *testing.T) {
	good, bad, unmatched := goodRule(t), goodRule(t), goodRule(t)
	bad.Name, bad.Threshold = "bad", 0
	unmatched.Name, unmatched.When = "unmatched", match.When{Status: []string{"ok"}}
	for _, c := range []struct {
		rules []hotkey.Rule
		want  []string
	}{
		{[]hotkey.Rule{good, bad}, []string{`rule 2 ("bad")`, "threshold: 0: must be 1 to"}},
		{[]hotkey.Rule{good, unmatched}, []string{`rule 2 ("unmatched")`, `status: "ok"`}},
		{[]hotkey.Rule{good, good}, []string{"rule 2", "name: must be unique"}},
	} {
		err := newSetError(c.rules...)
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("the error is %v, without %q", err, part)
			}
		}
	}
}

func TestSetHoldsItsRules(t *testing.T) {
	a, b := goodRule(t), goodRule(t)
	b.Name, b.Key, b.When = "b", mustKey(t, "client", "path"), match.When{Method: []string{"GET"}}
	rules := []hotkey.Rule{a, b}
	s := mustSet(t, rules...)
	rules[0].Name = "changed"
	if s.Len() != 2 || s.Rule(0).Name != "r" || s.Rule(1).Name != "b" {
		t.Errorf("the set has %d rules, %q and %q", s.Len(), s.Rule(0).Name, s.Rule(1).Name)
	}
	if r, ok := s.Named("b"); !ok || r != s.Rule(1) {
		t.Errorf("the rule named b is %+v, %t", r, ok)
	}
	if r, ok := s.Named("c"); ok || r != nil {
		t.Errorf("there is a rule named c: %+v", r)
	}
	if got, want := s.Fields(), []string{"client", "method", "path"}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}
