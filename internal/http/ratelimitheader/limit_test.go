package ratelimitheader

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// The fields for a limit, by algorithm.
func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		limits    []ratelimit.Limit
		algorithm ratelimit.Algorithm
		want      string
	}{
		{[]ratelimit.Limit{{N: 60, Span: time.Minute}}, ratelimit.Sliding, `"a";q=60;w=60`},
		{[]ratelimit.Limit{{N: 0, Span: 1 * time.Millisecond}}, ratelimit.Exact, `"a";q=0;w=1`},
		{[]ratelimit.Limit{{N: limit.MaxN, Span: limit.MaxSpan}}, ratelimit.Sliding, `"a";q=4294967295;w=315360000`},
		{[]ratelimit.Limit{{N: 5, Span: time.Second}, {N: 9, Span: 2500 * time.Millisecond}}, ratelimit.TwoBucket, `"a/1s";q=5;w=1, "a/2500ms";q=9;w=3`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second}}, ratelimit.GCRA, `"a";q=10;w=1`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second, Burst: 100}}, ratelimit.GCRA, `"a";q=100;w=10`},
		{[]ratelimit.Limit{{N: 10, Span: time.Second, Burst: 5}}, ratelimit.GCRA, `"a";q=5;w=1`},
		{[]ratelimit.Limit{{N: 3, Span: time.Minute, Burst: 10}}, ratelimit.LeakyBucket, `"a";q=10;w=200`},
		{[]ratelimit.Limit{{N: 0, Span: limit.MaxSpan, Burst: limit.MaxN}}, ratelimit.GCRA, `"a";q=4294967295;w=315360000`},
		{[]ratelimit.Limit{{N: 1, Per: ratelimit.PerSecond}, {N: 2, Per: ratelimit.PerDay}, {N: 3, Per: ratelimit.PerMonth}}, ratelimit.Calendar, `"a/second";q=1;w=1, "a/day";q=2;w=86400, "a/month";q=3;w=2678400`},
		{[]ratelimit.Limit{{N: 7, Span: time.Minute}}, ratelimit.InFlight, `"a";q=7;qu="concurrent-requests"`},
	} {
		p := New(mustSet(t, ratelimit.Rule{Name: "a", Key: key(t, "client"), Limits: c.limits, Algorithm: c.algorithm}), false)
		got, n := p.Append(nil, []ratelimit.Outcome{{Skipped: true}}, &ratelimit.Decision{Allowed: true})
		if string(got) != c.want || n != len(got) {
			t.Errorf("%v %+v: %s, the first %d bytes; want %s", c.algorithm, c.limits, got, n, c.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{
		{0, 0},
		{1, 1},
		{time.Second - 1, 1},
		{time.Second, 1},
		{time.Second + 1, 2},
		{math.MaxInt64, 9223372037},
	} {
		if got := Seconds(c.d); got != c.want {
			t.Errorf("%v is %d s; want %d", c.d, got, c.want)
		}
	}
}

// sfString is the form of a String of RFC 9651, section 3.3.3.
var sfString = regexp.MustCompile(`^"(?:[ !#-\[\]-~]|\\["\\])*"$`)

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "per-client", `a "b"\`, "\x00\x7fü\xff", "%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := quote(s)
		if !sfString.MatchString(q) {
			t.Fatalf("%q is written as %s, want a String of RFC 9651", s, q)
		}
		plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q[1 : len(q)-1])
		if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 && plain != s {
			t.Fatalf("%q is written as %s", s, q)
		}
	})
}

// TestPoliciesOfSlots has a limit in slots that is full beside one that is not:
// its fields last until its last slot has left, a slot after the span.
func TestPoliciesOfSlots(t *testing.T) {
	for _, n := range []uint64{129, 500} {
		r := ratelimit.Rule{
			Name: "a", Key: key(t, "client"), Algorithm: ratelimit.Sliding,
			Limits: []ratelimit.Limit{{N: n, Span: time.Minute}, {N: 10 * n, Span: time.Hour}},
		}
		p := New(mustSet(t, r), false)
		o := ratelimit.Outcome{Limit: n, Remaining: 1, ResetAfter: time.Hour + time.Minute}
		both, at := p.Append(nil, []ratelimit.Outcome{o}, &ratelimit.Decision{Allowed: true})
		if got, want := string(both[at:]), `"a/60s";r=1;t=61`; got != want {
			t.Errorf("limit %d: %s, want %s", n, got, want)
		}
	}
}
