package migrate

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
)

// TestEnvoyAdmits compares a limit with windows that begin with the minute.
func TestEnvoyAdmits(t *testing.T) {
	r := Envoy(Source{"c.yaml", []byte("domain: d\ndescriptors:\n- key: plan\n  value: basic\n  descriptors:\n  - key: remote_address\n    rate_limit: {unit: minute, requests_per_unit: 3}\n")})
	if len(r.Notes) > 0 {
		t.Errorf("%v", r.Notes)
	}
	l := limiter(t, r)
	count := map[int64]int{}
	at := time.Unix(1_700_000_000, 0)
	for range 200 {
		at = at.Add(7 * time.Second)
		var e match.Event
		e.SetString(match.Client, "192.0.2.1")
		e.SetNamed("plan", []byte("basic"))
		minute := at.Unix() / 60
		want := count[minute] < 3
		if want {
			count[minute]++
		}
		if d := l.TakeN(at, &e, 1); d.Allowed != want {
			t.Fatalf("at %v: %+v, in a minute with %d", at, d, count[minute])
		}
		e.SetNamed("plan", []byte("gold"))
		if d := l.TakeN(at, &e, 1); !d.Unmatched {
			t.Fatalf("another plan is judged: %+v", d)
		}
	}
}

func TestEnvoyNotes(t *testing.T) {
	for text, want := range map[string]string{
		"descriptors: 1\n":                "f:1: descriptors: must be a list",
		"domain: x\r\ndescriptors: 1\r\n": "f:2: descriptors: must be a list",
		"- a\n":                           "f:1: the file: must be a mapping of keys to values",
		"a: [\n":                          "f:1: not read: ",
		"descriptors:\n- key: a\n  rate_limit: {unit: week, requests_per_unit: 1}\n":              `f:2: unit: "week": must be second, minute, hour or day`,
		"descriptors:\n- key: a\n  rate_limit: {unit: day}\n":                                     `f:2: requests_per_unit: "": must be a number`,
		"descriptors:\n- key: a\n  value: x*y\n  rate_limit: {unit: day, requests_per_unit: 1}\n": "a * that stands for itself",
		"descriptors:\n" + deep(9): "descriptors: in 8 others: a rule counts by at most 8 fields: not imported",
	} {
		r := Envoy(Source{"f", []byte(text)})
		if len(r.Notes) != 1 || !strings.Contains(r.Notes[0].String(), want) {
			t.Errorf("%q: %v, want %s\n%s", text, r.Notes, want, r.Rules)
		}
	}
}

// deep returns descriptors in each other.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		indent := strings.Repeat("  ", 2*i)
		b.WriteString(indent + "- key: k" + string(rune('a'+i)) + "\n" + indent + "  descriptors:\n")
	}
	return b.String() + strings.Repeat("  ", 2*n) + "- key: z\n"
}

func FuzzEnvoy(f *testing.F) {
	seed(f, "ratelimit.yaml")
	f.Fuzz(func(t *testing.T, data []byte) { check(t, Envoy, data) })
}
