package ban

import (
	"testing"
	"time"
)

// TestReasonIsRead reads back the reason of each cause, and no other text.
func TestReasonIsRead(t *testing.T) {
	for reason, of := range map[string]Cause{
		"more than 1 hit in 1m": Hits, "more than 0 hits in 1s": Hits, "more than 20 refusals in 5m": Refusals, "more than 1 refusal in 1h": Refusals,
		"more than 1 distinct value in 10m": Distinct, "more than 20 distinct values in 1h0m1s": Distinct,
	} {
		o, ok := parseOrigin(reason)
		if p, counted := o.counted(); !ok || !counted || p.Of != of || o.reason() != reason {
			t.Errorf("%q is read as %v, %v: %q", reason, p.Of, ok, o.reason())
		}
	}
	for _, other := range []string{"", "more than 20 tries in 5m", "more than 20 hit in 5m", "more than 2000000000 hits in 5m", "more than 20 hits in 5m0s", "more than -1 hits in 1m", "20 hits in 1m"} {
		if o, ok := parseOrigin(other); ok {
			t.Errorf("%q is read as a reason, %q", other, o.reason())
		}
	}
	if got := ruleOrigin(&Policy{Of: Distinct, After: MaxAfter, Span: MaxSpan}); got&originText != 0 {
		t.Errorf("the origin %x is that of a text", got)
	} else if p, _ := got.counted(); p.Of != Distinct || p.After != MaxAfter || p.Span != 10*365*24*time.Hour {
		t.Errorf("%+v", p)
	}
}
