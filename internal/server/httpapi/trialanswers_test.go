package httpapi

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
)

// The rules in force, and a draft that looks at answers in other ways.
const (
	answersInForce = `version: 1
limits:
  - {name: requests, key: client, limit: 6 per 1m}
  - {name: logins, key: client, when: {path: "/login/**", status: 401}, limit: 2 per 1m, ban: {after: 1 refusals in 1m, for: 20s}}
`
	answersDraft = `version: 1
limits:
  - {name: requests, key: client, limit: 5 per 1m}
  - {name: agents, key: agent, when: {status: [401, 403]}, limit: 3 per 1m}
bans:
  - {name: missing, key: client, when: {status: 404}, after: 1 distinct path in 1m, for: 30s}
  - {name: large, key: client, when: {size: "9*", not: {method: GET}}, after: 1 hits in 1m, for: 10s}
`
)

// A step is a request, or the answer to it, at a time.
type step struct {
	after   time.Duration
	request []string
	answer  []string // nil for a request
	of      int      // the step of the request
	how     int      // 0: by id; else by all fields
}

// randomSteps returns requests, some of which are answered later.
func randomSteps(rnd *rand.Rand) (steps []step) {
	pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
	var open []int
	for range 200 {
		s := step{after: time.Duration(1 + rnd.IntN(int(2*time.Second)))}
		if len(open) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(open))
			s.of, s.how = open[i], rnd.IntN(2)
			s.request = steps[s.of].request
			s.answer = []string{"status", pick("200", "401", "403", "404"), "size", pick("17", "900")}
			open = slices.Delete(open, i, i+1)
		} else {
			s.request = []string{"client", pick("192.0.2.1", "192.0.2.2"), "method", pick("GET", "POST"), "path", pick("/a", "/b", "/login/x"), "agent", pick("good", "bad")}
			open = append(open, len(steps))
		}
		steps = append(steps, s)
	}
	return steps
}

// play has an engine judge steps, and returns which requests it allows. If allowedBefore is nil, the answers to these are
// reported, some by id; else the answers to those in allowedBefore.
func play(t *testing.T, e *engine.Engine, steps []step, allowedBefore []bool) (allowed []bool) {
	c := e.Session()
	fill := func(fields ...string) *match.Event {
		ev := c.Event()
		for i := 0; i < len(fields); i += 2 {
			ev.SetNamedString(fields[i], fields[i+1])
		}
		return ev
	}
	ids := make([]string, len(steps))
	allowed = make([]bool, len(steps))
	answered := allowed
	if allowedBefore != nil {
		answered = allowedBefore
	}
	for i, s := range steps {
		time.Sleep(s.after)
		terms, fields := engine.Terms{Report: time.Hour}, s.request
		if s.answer != nil {
			if !answered[s.of] {
				continue
			}
			terms, fields = engine.Terms{Outcome: true}, slices.Concat(s.request, s.answer)
			if allowedBefore == nil && s.how == 0 {
				terms, fields = engine.Terms{Outcome: true, ByID: true, ID: ids[s.of]}, s.answer
			}
		}
		d := must.Get(c.Check(fill(fields...), 1, terms))(t)
		id, _ := c.ID()
		ids[i], allowed[i] = string(id), d.Allowed
	}
	return allowed
}

func refusedOf(e *engine.Engine) int64 {
	n := e.Totals()
	return int64(n.Refused + n.Banned)
}

// TestTrialOfAnswers tries rules on the kept events of an engine that received random answers, by id and by fields. The
// rules in force refuse what the engine has refused, and a draft what an engine with the draft refuses for the same
// requests and answers.
func TestTrialOfAnswers(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	byAnswers := int64(0)
	for range rounds {
		steps := randomSteps(rnd)
		synctest.Test(t, func(t *testing.T) {
			newEngine := func(text string) *engine.Engine {
				e := must.Get(engine.New(engine.Config{Rules: parseRules(t, text), KeepEvents: 1 << 20}))(t)
				t.Cleanup(e.Close)
				return e
			}
			e, old, draft := newEngine(answersInForce), parseRules(t, answersInForce), parseRules(t, answersDraft)
			allowed := play(t, e, steps, nil)
			kept, _ := e.KeptEvents()
			defer kept.Close()
			d := must.Get(replay.Diff(context.Background(), replay.DiffConfig{Config: replay.Config{Events: kept.All(), Cores: 1}, Old: old, New: draft}))(t)
			requests := int64(0)
			for _, s := range steps {
				if s.answer == nil {
					requests++
				}
			}
			if d.Events != requests || d.Old.Refused != refusedOf(e) || kept.Missed.Answers != 0 {
				t.Errorf("%d events, %d refused by the rules in force, %d answers missed; want %d and %d", d.Events, d.Old.Refused, kept.Missed.Answers, requests, refusedOf(e))
			}
			other := newEngine(answersDraft)
			play(t, other, steps, allowed)
			if d.New.Refused != refusedOf(other) || d.Old.Allowed+d.Old.Refused != requests {
				t.Errorf("the draft refuses %d, want %d", d.New.Refused, refusedOf(other))
			}
			byAnswers += int64(d.New.Bans)
		})
		if t.Failed() {
			return
		}
	}
	if byAnswers == 0 {
		t.Error("no answer has begun a ban")
	}
}
