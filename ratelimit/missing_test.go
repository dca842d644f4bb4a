package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// required declares the fields tenant and token, without which events are refused, and plan, without which they are not.
var required = ratelimit.SetConfig{Fields: []match.Source{
	{Field: "tenant", Header: "X-Tenant", Refuse: true}, {Field: "token", Bearer: true, Refuse: true}, {Field: "plan"},
}}

func requiring(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	set := must.Get(ratelimit.NewSet(required, rules...))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	return l
}

func fieldsEvent(pairs ...string) *match.Event {
	e := new(match.Event)
	for i := 0; i < len(pairs); i += 2 {
		e.SetNamedString(pairs[i], pairs[i+1])
	}
	return e
}

// namesOf returns the names of the fields that e has.
func namesOf(e *match.Event) (names []string) {
	for name := range e.Fields() {
		names = append(names, name)
	}
	return names
}

// TestMissingField has rules refuse exactly the events that lack a field.
func TestMissingField(t *testing.T) {
	limits := []ratelimit.Limit{{N: 2, Span: time.Minute}}
	l := requiring(t,
		ratelimit.Rule{Name: "client", Key: match.MustKey("client"), Limits: limits},
		ratelimit.Rule{Name: "api", Key: match.MustKey("tenant"), Limits: limits, When: match.When{Path: []string{"/api/*"}}},
		ratelimit.Rule{Name: "either", Key: match.MustKey("plan", "token | tenant"), Limits: limits, When: match.When{Path: []string{"/either"}}},
		ratelimit.Rule{Name: "watched", Key: match.MustKey("token"), Limits: limits, When: match.When{Path: []string{"/watched"}}, Shadow: true},
		ratelimit.Rule{Name: "banned", Key: match.MustKey("client"), Ban: &ratelimit.Ban{After: 3, Span: time.Hour, For: time.Hour}, When: match.When{Path: []string{"/api/*"}}},
	)
	for _, x := range []struct {
		event   *match.Event
		rule    string // that refuses, or ""
		missing string
	}{
		{fieldsEvent("client", "192.0.2.1", "path", "/api/x"), "api", "tenant"},
		{fieldsEvent("client", "192.0.2.1", "path", "/api/x", "tenant", "acme"), "", ""},
		{fieldsEvent("client", "192.0.2.1", "path", "/else"), "", ""},
		{fieldsEvent("path", "/either", "plan", "free"), "either", "token | tenant"},
		{fieldsEvent("path", "/either", "plan", "free", "tenant", "acme"), "", ""},
		{fieldsEvent("path", "/either", "tenant", "acme"), "", ""}, // without plan, the rule does not judge it
		{fieldsEvent("path", "/either"), "either", "token | tenant"},
		{fieldsEvent("path", "/watched"), "", ""},
		{fieldsEvent("client", "192.0.2.1", "path", "/api/x", "tenant", intake.Missing), "api", "tenant"}, // kept while it was shared
	} {
		p := l.Peek(x.event)
		d, outcomes := l.Judge(l.Now(), x.event, 1, nil)
		if p.Allowed != d.Allowed || p.Missing != d.Missing || p.Rule != d.Rule {
			t.Errorf("%v: Peek returns %+v, Judge %+v", namesOf(x.event), p, d)
		}
		if d.Missing != x.missing || d.Allowed != (x.missing == "") || x.missing != "" && (d.Rule != x.rule || d.RetryAfter != ratelimit.Never || d.Unmatched) {
			t.Errorf("%v: %+v; want rule %q and field %q", namesOf(x.event), d, x.rule, x.missing)
		}
		found := ""
		for i, o := range outcomes {
			if i > 0 && outcomes[i-1].Rule >= o.Rule {
				t.Errorf("%v: outcomes are not in the order of rules", namesOf(x.event))
			}
			if o.Missing != "" && !o.Set.Rules()[o.Rule].Shadow {
				found = o.Missing
			}
		}
		if found != x.missing {
			t.Errorf("%v: the missing field in an outcome is %q; want %q", namesOf(x.event), found, x.missing)
		}
	}
	// The client was charged for /api/x with a tenant and /else, and not for the refused event.
	if d := l.Take(fieldsEvent("client", "192.0.2.1")); d.Allowed || d.Rule != "client" {
		t.Errorf("the third event of the client: %+v; want it refused", d)
	}
	want := map[string][4]uint64{ // refused, shadow, lacking, lacking that were refused
		"client": {2, 0, 5, 0}, "api": {2, 0, 2, 2}, "either": {2, 0, 3, 2}, "watched": {0, 1, 1, 1}, "banned": {},
	}
	for _, r := range l.Stats().Rules {
		if got := [4]uint64{r.Refused, r.Shadow, r.Lacking, r.LackingRefused}; got != want[r.Rule] {
			t.Errorf("%s: refused, shadow, lacking, refused as lacking: %v; want %v", r.Rule, got, want[r.Rule])
		}
	}
}

// TestMissingFieldIsAHit has a ban count events that another rule refuses because they lack a field; while it holds,
// decisions report the ban.
func TestMissingFieldIsAHit(t *testing.T) {
	l := requiring(t,
		ratelimit.Rule{Name: "api", Key: match.MustKey("tenant"), Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}}},
		ratelimit.Rule{Name: "hits", Key: match.MustKey("client"), Ban: &ratelimit.Ban{After: 2, Span: time.Hour, For: time.Hour}},
		ratelimit.Rule{Name: "all", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 4, Span: time.Minute}}, CountRefused: true},
	)
	e := fieldsEvent("client", "192.0.2.1")
	for i := range 3 {
		d := l.Take(e)
		if d.Allowed || (d.Missing == "") != (i == 2) || d.RetryAfter != ratelimit.Never {
			t.Errorf("event %d: %+v", i, d)
		}
		if i == 2 && (d.Rule != "hits" || !d.Started || d.BannedUntil.IsZero()) {
			t.Errorf("the third begins no ban: %+v", d)
		}
	}
	all := must.Get(l.Rule("all"))(t)
	if d := all.Peek("192.0.2.1"); d.Remaining != 0 { // of 4, the three were counted; the decision shows what is left after one more
		t.Errorf("all: %+v; want 3 counted", d)
	}
}

// TestMissingFieldVerbs has all verbs refuse alike, and answers to requests be counted.
func TestMissingFieldVerbs(t *testing.T) {
	l := requiring(t, ratelimit.Rule{Name: "api", Key: match.MustKey("tenant"), Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}}})
	e := fieldsEvent("client", "192.0.2.1")
	if r := l.Reserve(e, 1); r.Decision.Missing != "tenant" || len(r.Outcomes) != 1 || r.Settle(2) != nil {
		t.Errorf("Reserve: %+v", r.Decision)
	}
	if _, err := l.Wait(context.Background(), e, 1); err == nil || !strings.Contains(err.Error(), "lacks the field tenant") {
		t.Errorf("Wait returns %v", err)
	}
	if d := l.TakeAt(time.Now(), e, 0); d.Missing != "tenant" {
		t.Errorf("a cost of 0: %+v", d)
	}
	ticket := new(batch.Ticket)
	for i, d := range l.Internal().TakeAll([]batch.Query{{Event: e, Cost: 1, Ticket: ticket}, {Event: e, Cost: 1, Peek: true}, {Rule: "api", Key: []string{"acme"}, Cost: 1}}, nil) {
		if (d.Missing != "") != (i < 2) || d.Allowed != (i == 2) {
			t.Errorf("query %d: %+v", i, d)
		}
	}
	if len(ticket.Charges) > 0 {
		t.Errorf("the ticket charges %v", ticket.Charges)
	}
	answer := fieldsEvent("client", "192.0.2.1", "status", "401")
	answer.Part = match.Answer
	if d := l.Take(answer); !d.Allowed || d.Missing != "" {
		t.Errorf("an answer: %+v", d)
	}
	request := fieldsEvent("client", "192.0.2.1")
	request.Part = match.Request
	if d := l.Take(request); d.Missing != "tenant" {
		t.Errorf("a request without its answer: %+v", d)
	}
}

// TestMissingFieldAgrees compares random events under random rules, some of which refuse events without a field, with a
// second limiter that gets no events that were refused only for a missing field: all other events must be decided the same.
func TestMissingFieldAgrees(t *testing.T) {
	rnd := randtest.New(t)
	fields := []string{"client", "tenant", "token", "plan"}
	var rules []ratelimit.Rule
	for i := range 6 {
		key := match.MustKey(fields[rnd.IntN(4)])
		if rnd.IntN(3) == 0 {
			key = match.MustKey(fields[rnd.IntN(2)], fields[2+rnd.IntN(2)])
		}
		r := ratelimit.Rule{Name: fmt.Sprint("r", i), Key: key, Limits: []ratelimit.Limit{{N: 1 + rnd.Uint64N(30), Span: time.Minute}}, Shadow: rnd.IntN(4) == 0}
		if rnd.IntN(2) == 0 {
			r.When = match.When{Path: []string{"/a"}}
		}
		rules = append(rules, r)
	}
	tested := requiring(t, rules...)
	plain := must.Get(ratelimit.New(rules...))(t)
	now, refused := time.Now(), 0
	for range 5000 {
		e := fieldsEvent("path", []string{"/a", "/b"}[rnd.IntN(2)])
		for _, name := range fields {
			if rnd.IntN(4) > 0 {
				e.SetNamedString(name, fmt.Sprint("198.51.100.", rnd.IntN(3)))
			}
		}
		now = now.Add(time.Duration(rnd.IntN(500)) * time.Millisecond)
		by := ""
		for i := range rules {
			r := &rules[i]
			cond := must.Get(r.When.Compile())(t)
			for _, name := range keyvalue.Fields(r.Key) {
				if by == "" && !r.Shadow && cond.Holds(e) && len(e.GetNamed(name)) == 0 && (name == "tenant" || name == "token") {
					by = r.Name
				}
			}
		}
		got := tested.TakeAt(now, e, 1)
		if by != "" {
			if refused++; got.Allowed || got.Missing == "" || got.Rule != by {
				t.Fatalf("%v: %+v; want it refused by %s", namesOf(e), got, by)
			}
			continue
		}
		if want := plain.TakeAt(now, e, 1); got != want && !(got.Unmatched != want.Unmatched && got.Allowed) {
			t.Fatalf("%v: %+v; without Refuse %+v", namesOf(e), got, want)
		}
	}
	if refused == 0 {
		t.Log("no event was refused in this run")
	}
}

func TestSourceSharesOrRefuses(t *testing.T) {
	if err := intake.Validate((&match.Source{Field: "x", Share: true, Refuse: true})); err == nil {
		t.Error("a field that events without it share, and are refused for, is accepted")
	}
}
