package hotkey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

func mustKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k, err := match.NewKey(match.Fold{Off: true}, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// goodRule returns a rule that is valid, with no value at a bound.
func goodRule(t testing.TB) hotkey.Rule {
	return hotkey.Rule{Name: "r", Key: mustKey(t, "path"), Threshold: 3, Span: time.Second, Hold: time.Minute}
}

// TestRuleErrors wants each error to name the field, the value
// and what is allowed.
func TestRuleErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*hotkey.Rule)
		want  []string
	}{
		"name":        {func(r *hotkey.Rule) { r.Name = "" }, []string{"rule 1", "name: missing"}},
		"key":         {func(r *hotkey.Rule) { r.Key = match.Key{} }, []string{"key: missing: must be a field"}},
		"threshold 0": {func(r *hotkey.Rule) { r.Threshold = 0 }, []string{"threshold: 0", "1 to 1073741824"}},
		"threshold": {
			func(r *hotkey.Rule) { r.Threshold = hotkey.MaxThreshold + 1 },
			[]string{"threshold: 1073741825", "1 to 1073741824"},
		},
		"no span":       {func(r *hotkey.Rule) { r.Span = 0 }, []string{"span: 0s", "from 1ms to 87600h"}},
		"span":          {func(r *hotkey.Rule) { r.Span = -time.Second }, []string{"span: -1s", "from 1ms to 87600h"}},
		"span not ms":   {func(r *hotkey.Rule) { r.Span = 1500 * time.Microsecond }, []string{"span: 1.5ms", "whole milliseconds"}},
		"span too long": {func(r *hotkey.Rule) { r.Span = hotkey.MaxSpan + time.Millisecond }, []string{"span: 87600h0m0.001s", "to 87600h"}},
		"hold":          {func(r *hotkey.Rule) { r.Hold = -1 }, []string{"hold: -1ns", "from 1ms to 87600h"}},
		"hold not ms":   {func(r *hotkey.Rule) { r.Hold = time.Second + 1 }, []string{"hold: 1.000000001s", "whole milliseconds"}},
		"hold too long": {func(r *hotkey.Rule) { r.Hold = 2 * hotkey.MaxSpan }, []string{"hold: 175200h", "to 87600h"}},
	} {
		r := goodRule(t)
		if err := newSetError(r); err != nil {
			t.Fatal(err)
		}
		c.spoil(&r)
		err := newSetError(r)
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

func newSetError(rules ...hotkey.Rule) error {
	_, err := hotkey.NewSet(rules...)
	return err
}

func TestRuleBounds(t *testing.T) {
	for name, change := range map[string]func(*hotkey.Rule){
		"least": func(r *hotkey.Rule) { r.Threshold, r.Span, r.Hold = 1, time.Millisecond, time.Millisecond },
		"most": func(r *hotkey.Rule) {
			r.Threshold, r.Span, r.Hold = hotkey.MaxThreshold, hotkey.MaxSpan, hotkey.MaxSpan
		},
		"hold": func(r *hotkey.Rule) { r.Hold = 0 },
	} {
		r := goodRule(t)
		change(&r)
		if err := newSetError(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
