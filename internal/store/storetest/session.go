package storetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/internal/store"
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
const ends = math.MaxInt64 - 4*int64(ratelimit.MaxSpan)

// at sets the time of the next request.
func (s *session) at(now int64) {
	s.now = ring.FloorDiv(min(max(now, -ends), ends), int64(s.config.Resolution)) * int64(s.config.Resolution)
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
	for i := range s.model.set.Len() {
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
	for i := range s.model.set.Len() {
		r := s.model.set.Rule(i)
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

// compare complains if the answer to r is not v.
func (s *session) compare(r *request, v answer) {
	if r.Now != v.at {
		s.broken("the request was judged at %+d ns, want %+d ns", r.Now-s.base, v.at-s.base)
	}
	for i := range r.Subjects {
		got, want := r.Subjects[i].Outcome, v.outcomes[i]
		if !v.allowed {
			got.Delay, want.Delay = 0, 0 // there is nothing to wait for
		}
		if diff := s.differs(v.at, r.Subjects[i].N, got, want); diff != "" {
			s.broken("rule %d: %s\\ngot  %+v\\nwant %+v", want.Rule, diff, got, want.Outcome)
		}
	}
	if !r.Answer { // nothing waits
		s.retryIsTrue(r, v)
	}
}

// differs returns how got differs from want for an event that brings n and was judged at that time, or "".
func (s *session) differs(at int64, n uint64, got Outcome, want outcome) string {
	rule := s.model.set.Rule(want.Rule)
	if slices.Contains(want.tied, got.LimitIndex) && !want.Banned && !want.Started && want.Limit == mostFor(rule.Limits[want.LimitIndex], n) {
		want.LimitIndex, want.Limit = got.LimitIndex, mostFor(rule.Limits[got.LimitIndex], n)
	}
	right := got
	right.Rule, right.Refused = want.Rule, want.Refused
	if !want.struck { // else it is unspecified what a peek returns of the ban
		right.Banned, right.Started, right.Skipped, right.Charged = want.Banned, want.Started, want.Skipped, want.Charged
	}
	counted := !want.struck && !want.Skipped
	if counted {
		right.Remaining = want.Remaining
		if !want.Banned {
			right.Limit, right.LimitIndex = want.Limit, want.LimitIndex
		}
		if !got.BannedUntil.Equal(want.BannedUntil) {
			right.BannedUntil = want.BannedUntil
		}
		if s.unlike(got.Delay, want.Delay) {
			right.Delay = want.Delay
		}
	}
	switch {
	case got != right:
		return "the outcome differs"
	case !counted, len(rule.Limits) > 0 && rule.Ban != nil: // ResetAfter may be that of either
		return ""
	case got.ResetAfter < 0 || !want.expired(at+int64(got.ResetAfter)):
		return "not all has expired after ResetAfter"
	case got.ResetAfter > 0 && want.expired(at+max(int64(got.ResetAfter-s.config.Resolution), 0)):
		return fmt.Sprintf("all has expired %v before ResetAfter", s.config.Resolution)
	}
	return ""
}

// unlike reports whether a waiting time is not the one wanted, or longer by less
// than the resolution.
func (s *session) unlike(got, want time.Duration) bool {
	return got < want || got >= want+s.config.Resolution
}

// retryIsTrue complains if the waiting time of the outcomes is not the shortest
// after which a single event is allowed.
func (s *session) retryIsTrue(r *request, v answer) {
	wait := s.wait(r)
	hopeless := slices.ContainsFunc(r.Subjects, func(sub subject) bool {
		rule := s.model.set.Rule(sub.Outcome.Rule)
		return !rule.Shadow && slices.ContainsFunc(rule.Limits, func(l ratelimit.Limit) bool { return r.Cost > mostFor(l, sub.N) })
	})
	switch {
	case v.allowed:
		if wait != 0 {
			s.broken("it was allowed; RetryAfter is %v, want 0", wait)
		}
		return
	case hopeless:
		if wait != ratelimit.Never {
			s.broken("its cost is above a limit; RetryAfter is %v, want Never", wait)
		}
		return
	case r.Refused && wait == 0:
		if !s.allows(r, v.at) {
			s.broken("RetryAfter is 0, but its own rules refuse the event")
		}
	case !s.allows(r, v.at+never): // as under a ban after 0 hits
		if wait == 0 {
			s.broken("it was refused; RetryAfter is 0")
		}
	case wait < 0, wait == ratelimit.Never:
		s.broken("RetryAfter is %v, want a time to wait", wait)
	case !s.allows(r, v.at+int64(wait)):
		s.broken("RetryAfter is %v, but the event is refused then", wait)
	case s.allows(r, v.at+int64(wait-s.config.Resolution)):
		s.broken("RetryAfter is %v, but the event is allowed %v earlier", wait, s.config.Resolution)
	}
}

// wait returns the longest waiting time of the outcomes of r.
func (s *session) wait(r *request) (wait time.Duration) {
	for i := range r.Subjects {
		o := &r.Subjects[i].Outcome
		if s.model.set.Rule(o.Rule).Shadow {
			continue
		}
		if o.RetryAfter == ratelimit.Never {
			return ratelimit.Never
		}
		wait = max(wait, o.RetryAfter)
	}
	return wait
}

// allows reports whether the rules of the subjects of r would allow its event at t, if nothing came
// in between.
func (s *session) allows(r *request, t int64) bool {
	then := *r
	then.Now, then.Peek, then.Refused = t, true, false
	return s.model.judge(&then).allowed
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

// reset deletes what was counted of the subjects.
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

// used returns how much of its limit a key has used according to the store, without the
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

// allowed reports whether no enforced rule refuses r.
func allowed(r *request) bool {
	return !slices.ContainsFunc(r.Subjects, func(s subject) bool {
		return s.Outcome.Refused && !r.Set.Rule(s.Outcome.Rule).Shadow
	})
}
