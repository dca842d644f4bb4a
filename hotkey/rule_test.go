package hotkey_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

func mustKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(match.Fold{Off: true}, fields...))(t)
	return k
}

// goodRule returns a rule that is valid, with no value at a bound.
func goodRule(t testing.TB) hotkey.Rule {
	return hotkey.Rule{Name: "r", Key: mustKey(t, "path"), Threshold: 3, Span: time.Second, Hold: time.Minute}
}

// TestRuleErrors checks that each error names the field, the value and what it
// must be.
func TestRuleErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*hotkey.Rule)
		want  []string
	}{
		"name":        {func(r *hotkey.Rule) { r.Name = "" }, []string{"rule 1", "name: missing"}},
		"key":         {func(r *hotkey.Rule) { r.Key = match.Key{} }, []string{"key: missing: must be a field"}},
		"threshold 0": {func(r *hotkey.Rule) { r.Threshold = 0 }, []string{"threshold: 0", "1 to 1073741824"}},
		"threshold": {
			func(r *hotkey.Rule) { r.Threshold = 1<<30 + 1 },
			[]string{"threshold: 1073741825", "1 to 1073741824"},
		},
		"no span":       {func(r *hotkey.Rule) { r.Span = 0 }, []string{"span: 0s", "from 1ms to 87600h"}},
		"span":          {func(r *hotkey.Rule) { r.Span = -time.Second }, []string{"span: -1s", "from 1ms to 87600h"}},
		"span not ms":   {func(r *hotkey.Rule) { r.Span = 1500 * time.Microsecond }, []string{"span: 1.5ms", "whole milliseconds"}},
		"span too long": {func(r *hotkey.Rule) { r.Span = limit.MaxSpan + time.Millisecond }, []string{"span: 87600h0m0.001s", "to 87600h"}},
		"hold":          {func(r *hotkey.Rule) { r.Hold = -1 }, []string{"hold: -1ns", "from 1ms to 87600h"}},
		"hold not ms":   {func(r *hotkey.Rule) { r.Hold = time.Second + 1 }, []string{"hold: 1.000000001s", "whole milliseconds"}},
		"hold too long": {func(r *hotkey.Rule) { r.Hold = 2 * limit.MaxSpan }, []string{"hold: 175200h", "to 87600h"}},
	} {
		r := goodRule(t)
		must.Do(t, newError(r))
		c.spoil(&r)
		err := newError(r)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error is %q, without %q", name, err, part)
			}
		}
	}
}

func newError(rules ...hotkey.Rule) error {
	_, err := hotkey.New(rules...)
	return err
}

func TestRuleBounds(t *testing.T) {
	for name, change := range map[string]func(*hotkey.Rule){
		"least": func(r *hotkey.Rule) { r.Threshold, r.Span, r.Hold = 1, time.Millisecond, time.Millisecond },
		"most": func(r *hotkey.Rule) {
			r.Threshold, r.Span, r.Hold = 1<<30, limit.MaxSpan, limit.MaxSpan
		},
		"hold": func(r *hotkey.Rule) { r.Hold = 0 },
	} {
		r := goodRule(t)
		change(&r)
		if err := newError(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsNameTheRule(t *testing.T) {
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
		err := newError(c.rules...)
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("the error is %v, without %q", err, part)
			}
		}
	}
}

func TestRuleFields(t *testing.T) {
	r := goodRule(t)
	r.Key, r.When = mustKey(t, "client", "path"), match.When{Method: []string{"GET"}, Path: []string{"/a"}}
	if got, want := r.Fields(), []string{"client", "method", "path"}; !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}
