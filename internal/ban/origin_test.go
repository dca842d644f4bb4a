package ban

import (
	"testing"
	"time"
)

// TestReason checks the reason of each cause.
func TestReason(t *testing.T) {
	for want, p := range map[string]Policy{
		"more than 1 hit in 1m":                  {After: 1, Span: time.Minute},
		"more than 0 hits in 1s":                 {Span: time.Second},
		"more than 20 refusals in 5m":            {Of: Refusals, After: 20, Span: 5 * time.Minute},
		"more than 1 refusal in 1h":              {Of: Refusals, After: 1, Span: time.Hour},
		"more than 20 distinct values in 1h0m1s": {Of: Distinct, After: 20, Span: time.Hour + time.Second},
	} {
		if got := p.Reason(); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	if got := ruleOrigin(&Policy{Of: Distinct, After: MaxAfter, Span: MaxSpan}); got&originText != 0 {
		t.Errorf("the origin %x is a text", got)
	} else if p, _ := got.counted(); p.Of != Distinct || p.After != MaxAfter || p.Span != 10*365*24*time.Hour {
		t.Errorf("%+v", p)
	}
}
