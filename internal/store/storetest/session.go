package storetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A session sends the same requests to a store and to the model, in the same order,
// from one goroutine.
type session struct {
	*check
	store Store
	model *model
	now   int64 // of the next request

	log []string // what was done last
}

// session opens a store for these rules.
func (c *check) session(rules ...ratelimit.Rule) *session {
	set := c.set(rules...)
	s := &session{check: c, store: c.open(c.t, set), model: newModel(set, &c.config)}
	s.at(c.base)
	return s
}

// ends are the first and the last time that a Limiter passes to a store, about 1720 and 2220.
const ends = math.MaxInt64 - 4*int64(limit.MaxSpan)

// at sets the time of the next request.
func (s *session) at(now int64) {
	s.now = windowtest.FloorDiv(min(max(now, -ends), ends), int64(s.config.Resolution)) * int64(s.config.Resolution)
	if s.config.SetClock != nil {
		s.config.SetClock(s.now)
	}
}

// pass lets d pass.
func (s *session) pass(d time.Duration) { s.at(s.now + int64(d)) }

// set compiles rules.
func (c *check) set(rules ...ratelimit.Rule) *ratelimit.Set {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, rules...)
	c.must(err)
	return set
}

// rule returns a rule with these limits, keyed by one field.
func (c *check) rule(name string, limits ...ratelimit.Limit) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: c.keyed(match.Path), Limits: limits, Algorithm: ratelimit.Sliding}
}

// keyed returns a key by one field.
func (c *check) keyed(f match.Field) match.Key {
	key, err := match.NewKey(match.Fold{Off: true}, f.String())
	c.must(err)
	return key
}

// under returns a limit of n in that many seconds, or the calendar period of the algorithm.
func (c *check) under(a ratelimit.Algorithm, n uint64, seconds int) ratelimit.Limit {
	if a == ratelimit.Calendar {
		return ratelimit.Limit{N: n, Per: ratelimit.PerSecond}
	}
	return ratelimit.Limit{N: n, Span: units(seconds)}
}

// units returns n times the span that most cases count in.
func units(n int) time.Duration { return time.Duration(n) * time.Second }

// about is a subject: the number of a rule, and a key.
func about(rule int, key string) subject {
	return subject{Key: []byte(key), Outcome: Outcome{Rule: rule}}
}

// all returns the subjects of all rules with one key.
func (s *session) all(key string) []subject {
	var subjects []subject
	for i := range s.model.set.Rules() {
		subjects = append(subjects, about(i, key))
	}
	return subjects
}

// take has the store and the model judge an event, and complains about any
// difference. It returns the request as the store left it, and whether the event
// was allowed.
func (s *session) take(cost uint64, subjects ...subject) (*request, bool) {
	return s.ask(cost, false, subjects)
}

// peek is take without charging.
func (s *session) peek(cost uint64, subjects ...subject) (*request, bool) {
	return s.ask(cost, true, subjects)
}

func (s *session) ask(cost uint64, peek bool, subjects []subject) (*request, bool) {
	return s.judge(&request{Cost: cost, Peek: peek, Subjects: subjects})
}

// judge has the store and the model judge r, and complains about any difference.
func (s *session) judge(r *request) (*request, bool) {
	s.sent(r)
	asked := *r
	asked.Now = s.now
	v := s.model.judge(&asked)
	s.compare(r, v)
	return r, v.allowed
}

// decide has the store decide r alone, with keys whose memory then changes: a store does not keep it.
func (s *session) decide(r *request) error {
	keys := make([][]byte, len(r.Subjects))
	for i := range r.Subjects {
		sub := &r.Subjects[i]
		keys[i], sub.Key = sub.Key, bytes.Clone(sub.Key)
	}
	s.store.Decide(ctx, []*request{r})
	for i := range r.Subjects {
		sub := &r.Subjects[i]
		clear(sub.Key)
		sub.Key = keys[i]
	}
	return r.Err
}

// broken is fatal, with what was done before.
func (s *session) broken(format string, args ...any) {
	s.fatal(format+"\n%s", append(args, s.history())...)
}

// history is what was done, the latest last.
func (s *session) history() string { return s.rules() + "\t" + strings.Join(s.log, "\n\t") }

// rules describes the rules.
func (s *session) rules() string {
	var b strings.Builder
	for i, r := range s.model.set.Rules() {
		fmt.Fprintf(&b, "\trule %d: %v, limits %+v, shadow %v, count refused %v", i, r.Algorithm, r.Limits, r.Shadow, r.CountRefused)
		if r.Ban != nil {
			fmt.Fprintf(&b, ", ban %+v", *r.Ban)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const keptHistory = 40

func (s *session) note(r *request) {
	verb := "take"
	switch {
	case r.Answer:
		verb = "answer"
	case r.Looks:
		verb = "request, counted when answered"
	}
	if r.Peek {
		verb = "peek"
	}
	if r.Refused {
		verb = "refused " + verb
	}
	line := fmt.Sprintf("%+d ns: %s %d", r.Now-s.base, verb, r.Cost)
	for i := range r.Subjects {
		key := r.Subjects[i].Key
		line += fmt.Sprintf(" %d:%.20q", r.Subjects[i].Outcome.Rule, key)
		if n := r.Subjects[i].N; n > 0 {
			line += fmt.Sprintf(" limit %d", n)
		}
		if r.Subjects[i].Look {
			line += "?"
		}
	}
	s.noted("%s", line)
}

// noted adds a line to the history.
func (s *session) noted(format string, args ...any) {
	if len(s.log) == keptHistory {
		s.log = s.log[1:]
	}
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// settleCounted corrects what r has charged, now; counted is what the model knows of it.
func (s *session) settleCounted(r *request, actual uint64, counted []subject) {
	st := s.settlement(r, actual, counted)
	s.noted("%+d ns: settle what was %d at %+d ns to %d", st.Now-s.base, r.Cost, r.Now-s.base, actual)
	s.correct(r, actual)
	s.model.settle(&st)
}

// correct is settleCounted without the model. Any goroutine may call it.
func (s *session) correct(r *request, actual uint64) {
	st := s.settlement(r, actual, r.Subjects)
	if err := s.store.Settle(ctx, &st); err != nil {
		s.complain("Settle returned %w", err)
	}
}

func (s *session) settlement(r *request, actual uint64, subjects []subject) settlement {
	return settlement{Set: s.model.set, At: r.Now, Now: s.now, Charged: r.Cost, Actual: actual, Subjects: subjects}
}

// refund gives back to a key what was charged at any time.
func (s *session) refund(n uint64, rule int, key string) uint64 {
	r := adjustment{Change: store.Refund, Set: s.model.set, Rule: rule, Key: []byte(key), N: n, Now: s.now}
	asked := r
	s.noted("%+d ns: refund %d %d:%.20q", r.Now-s.base, n, rule, key)
	if err := s.store.Adjust(ctx, &r); err != nil {
		s.broken("Refund returned %w", err)
	}
	if want := s.model.refund(&asked); r.Taken != want {
		s.broken("Refund took back %d, want %d", r.Taken, want)
	}
	return r.Taken
}

// reset deletes the counts of the subjects.
func (s *session) reset(subjects ...subject) {
	s.noted("reset %d:%.20q", subjects[0].Outcome.Rule, subjects[0].Key)
	for _, of := range subjects {
		a := adjustment{Change: store.Reset, Set: s.model.set, Rule: of.Outcome.Rule, Key: of.Key}
		if err := s.store.Adjust(ctx, &a); err != nil {
			s.broken("Reset returned %w", err)
		}
	}
	for i := range subjects {
		s.model.at(&subjects[i]).clear(s.model.resolution)
	}
}

// update moves the store to another set; see model.update.
func (s *session) update(set *ratelimit.Set) {
	s.noted("update from\n%s", s.rules())
	published := 0
	if err := s.store.Update(ctx, set, func() { published++ }); err != nil {
		s.broken("Update returned %w", err)
	}
	if published != 1 {
		s.broken("Update called published %d times, want once", published)
	}
	s.model.update(set)
}

// used returns the used amount of a key's limit according to the store, without the
// model.
func (s *session) used(rule int, key string) uint64 {
	o := s.raw(0, true, about(rule, key)).Subjects[0].Outcome
	return o.Limit - o.Remaining
}

// raw has the store judge without the model.
func (s *session) raw(cost uint64, peek bool, subjects ...subject) *request {
	return s.sent(&request{Cost: cost, Peek: peek, Subjects: subjects})
}

// sent has the store decide r now.
func (s *session) sent(r *request) *request {
	r.Set, r.Now, r.Looks = s.model.set, s.now, slices.ContainsFunc(r.Subjects, func(s subject) bool { return s.Look })
	s.note(r)
	if err := s.decide(r); err != nil {
		s.broken("Decide returned %w", err)
	}
	return r
}
