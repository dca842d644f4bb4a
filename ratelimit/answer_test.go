package ratelimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// failures returns a rule that counts answers with status 401 by client.
func failures(limit uint64, span time.Duration) ratelimit.Rule {
	return ratelimit.Rule{
		Name: "failures", Key: match.MustKey("client"), When: match.When{Path: []string{"/login"}, Status: []string{"401"}},
		Limits: []ratelimit.Limit{{N: limit, Span: span}}, Algorithm: ratelimit.Exact,
	}
}

// part returns a part of a request for /login; status is "" before it is answered.
func part(of match.Part, client, status string) *match.Event {
	e := &match.Event{Part: of}
	e.SetString(match.Client, client)
	e.SetString(match.Path, "/login")
	e.SetString(match.Status, status)
	return e
}

func newLimiter(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	l := must.Get(ratelimit.New(rules...))(t)
	return l
}

// TestAnswersReference compares random requests and answers with a list of everything counted. With one request of a client
// at a time, no window of a span has more failures than the limit, and a refused request finds the window full. With
// several, the excess is at most the number that were in flight when it was full.
func TestAnswersReference(t *testing.T) {
	const n, span = 5, time.Minute
	for _, parallel := range []int{1, 4} {
		t.Run(fmt.Sprint(parallel, " under way"), func(t *testing.T) {
			rnd, now := randtest.New(t), time.Unix(1_700_000_000, 0)
			l := newLimiter(t, failures(n, span))
			counted := map[string][]time.Time{} // failures of each client in the window
			under := map[string]int{}           // requests under way
			most := 0
			for range 20_000 {
				now = now.Add(time.Duration(rnd.Int64N(int64(4 * time.Second))))
				client := fmt.Sprint("192.0.2.", rnd.IntN(2))
				counted[client] = slices.DeleteFunc(counted[client], func(at time.Time) bool { return !at.After(now.Add(-span)) })
				if under[client] < parallel && rnd.IntN(2) == 0 {
					d := l.TakeAt(now, part(match.Request, client, ""), 1)
					if full := len(counted[client]) >= n; d.Allowed == full {
						t.Fatalf("at %v the request of %s is allowed: %t, with %d failures in the window", now, client, d.Allowed, len(counted[client]))
					} else if !full {
						under[client]++
					}
				} else if under[client] > 0 {
					under[client]--
					status := []string{"200", "401", "401"}[rnd.IntN(3)]
					if d := l.TakeAt(now, part(match.Answer, client, status), 1); !d.Allowed || d.Unmatched != (status == "200") {
						t.Fatalf("the answer %s is judged %+v", status, d)
					}
					if status == "401" {
						counted[client] = append(counted[client], now)
					}
				}
				most = max(most, len(counted[client]))
			}
			if most < n || most > n+parallel-1 || parallel > 1 && most == n {
				t.Errorf("at most %d failures were in a window, want %d, and more by %d at most", most, n, parallel-1)
			}
		})
	}
}

// TestAnswersAndOtherRules checks that rules which look at no answer ignore answers, and that an event with both
// parts is judged and counted at once.
func TestAnswersAndOtherRules(t *testing.T) {
	all := ratelimit.Rule{Name: "all", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 10, Span: time.Minute}}}
	l := newLimiter(t, all, failures(2, time.Minute))
	left := func(rule string) uint64 {
		r := must.Get(l.Rule(rule))(t)
		return r.Peek("192.0.2.1").Remaining
	}
	for _, step := range []struct {
		part          match.Part
		status        string
		allowed       bool
		all, failures uint64 // left of the limit, as Peek has it
	}{
		{match.Request, "", true, 8, 1},
		{match.Answer, "401", true, 8, 0},
		{match.Answer, "200", true, 8, 0},
		{match.Whole, "200", true, 7, 0},
		{match.Whole, "401", true, 6, 0},
		{match.Whole, "401", false, 6, 0},
		{match.Request, "", false, 6, 0},
		{match.Answer, "401", true, 6, 0}, // it was under way
		{match.Request, "", false, 6, 0},
	} {
		d := l.Take(part(step.part, "192.0.2.1", step.status))
		if d.Allowed != step.allowed || left("all") != step.all || left("failures") != step.failures {
			t.Fatalf("after %+v: %+v, with %d and %d left", step, d, left("all"), left("failures"))
		}
	}
}

// TestAnswersUnderWay rejects a rule about requests under way whose condition looks at the answer.
func TestAnswersUnderWay(t *testing.T) {
	rule := failures(1, time.Minute)
	rule.Algorithm = ratelimit.InFlight
	if _, err := ratelimit.New(rule); err == nil || !strings.Contains(err.Error(), `rule 1 ("failures"): when: must have no field of the answer (status, size, duration) with algorithm in-flight`) {
		t.Errorf("got %v", err)
	}
}

// TestAnswersBan checks that the answer that is one too many begins a ban, and that refusals of requests do.
func TestAnswersBan(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hits, refusals := failures(0, 0), failures(2, time.Minute)
	hits.Limits, hits.Ban = nil, &ratelimit.Ban{After: 2, Span: time.Minute, For: time.Hour}
	refusals.Ban = &ratelimit.Ban{After: 2, Of: ratelimit.Refusals, Span: time.Minute, For: time.Hour}
	for _, rule := range []ratelimit.Rule{hits, refusals} {
		l := newLimiter(t, rule)
		for i := range 2 {
			if d := l.TakeAt(now, part(match.Request, "192.0.2.1", ""), 1); !d.Allowed {
				t.Fatalf("request %d is judged %+v", i, d)
			}
			l.TakeAt(now, part(match.Answer, "192.0.2.1", "401"), 1)
		}
		var d ratelimit.Decision
		if rule.Ban.Of == ratelimit.Hits {
			if d = l.TakeAt(now, part(match.Request, "192.0.2.1", ""), 1); !d.Allowed {
				t.Fatalf("the request before the ban is judged %+v", d)
			}
			d = l.TakeAt(now, part(match.Answer, "192.0.2.1", "401"), 1)
			if !d.Allowed {
				t.Errorf("the answer is refused: %+v", d)
			}
		} else {
			for range 3 {
				d = l.TakeAt(now, part(match.Request, "192.0.2.1", ""), 1)
			}
		}
		if !d.Started || !d.BannedUntil.Equal(now.Add(time.Hour)) {
			t.Errorf("a ban after 2 %v: %+v, want one of an hour", rule.Ban.Of, d)
		}
		for _, of := range []match.Part{match.Request, match.Answer} { // the answer was under way
			if d = l.TakeAt(now.Add(time.Minute), part(of, "192.0.2.1", "401"), 1); d.BannedUntil.IsZero() || d.Started || d.Allowed != (of == match.Answer) {
				t.Errorf("in the ban, part %d is judged %+v", of, d)
			}
		}
		if d = l.TakeAt(now.Add(time.Hour), part(match.Request, "192.0.2.1", ""), 1); !d.Allowed {
			t.Errorf("after the ban: %+v", d)
		}
	}
}

// TestAnswerAfterUpdate changes the rules between a request and its answer: the answer is counted under the new rules.
func TestAnswerAfterUpdate(t *testing.T) {
	l := newLimiter(t, failures(1, time.Minute))
	if d := l.Take(part(match.Request, "192.0.2.1", "")); !d.Allowed {
		t.Fatal(d)
	}
	changed := failures(1, time.Minute)
	changed.When.Status = []string{"4xx"}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, changed))(t)
	must.Do(t, l.Update(set))
	l.Take(part(match.Answer, "192.0.2.1", "404"))
	if d := l.Take(part(match.Request, "192.0.2.1", "")); d.Allowed {
		t.Errorf("after an answer that only the new rule counts: %+v", d)
	}
}

// TestRequestsMakeNoRecords checks that a rule which counts answers takes no memory for clients without one, and
// counts no decision about their requests.
func TestRequestsMakeNoRecords(t *testing.T) {
	l := newLimiter(t, failures(1, time.Minute))
	for i := range 1000 {
		l.Take(part(match.Request, fmt.Sprintf("192.0.2.%d", i%250), ""))
	}
	l.Take(part(match.Answer, "192.0.2.1", "401"))
	l.Take(part(match.Request, "192.0.2.1", ""))
	if s := l.Stats().Rules[0]; s.Keys != 1 || s.Allowed != 1 || s.Refused != 1 || s.Sketched+s.Full != 0 {
		t.Errorf("one answer and one refusal are counted as %+v", s)
	}
}
