package latelyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/clientaddr"
	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Config is how a [Middleware] works. Its zero value is the default: clients
// are told apart by the peers of their connections, every request costs 1.
//
// The functions are called by the goroutine that serves the request, several
// at once.
type Config struct {
	// Identity is whom to believe about who a client is.
	Identity IdentityConfig

	// Fields gives further event fields, by the names that rules have for
	// them, and replaces what the package would fill in: "tenant", "client".
	// A function is called for requests only if the rules look at its field;
	// "" means that the request does not have it.
	Fields map[string]func(*http.Request) string

	// Cost is what a request costs; nil is 1 for each. 0 only looks: such a
	// request is not refused by limits, and not counted.
	Cost func(*http.Request) uint64

	// Skip, when it says true, lets a request pass unjudged: health checks.
	Skip func(*http.Request) bool

	// Headers is which fields tell clients of limits.
	Headers Headers

	// Jitter adds a random number of seconds, at most so many, to each
	// Retry-After, so that those who wait for a limit that resets at one time
	// for all do not come back at one time. At most an hour.
	Jitter time.Duration

	// HideNames keeps the names of rules from clients: they see "policy-1"
	// for the first rule of the Set, and so on.
	HideNames bool

	// Observe, when not nil, is told of every judged request, before it is
	// answered or handed on: for logs and metrics, and what shadow rules
	// would have refused.
	Observe func(*http.Request, Verdict)

	// OnRefused, when not nil, answers refused requests. RateLimit fields,
	// Retry-After and Cache-Control are set; status and body are its own.
	OnRefused func(http.ResponseWriter, *http.Request, Verdict)
}

// A Verdict is what became of one request.
type Verdict struct {
	// Client is who sent it, as the Identity found it: even where
	// Config.Fields gives the rules something else.
	Client Client

	// Decision is the answer under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes is what each matching rule said, shadow rules included; of a
	// request during which the rules were changed, no more than what the
	// deciding rule said. It is valid until the function that got the Verdict
	// returns.
	Outcomes []ratelimit.Outcome

	// Set is what the Rule numbers in Outcomes refer to.
	Set *ratelimit.Set
}

// A Middleware judges requests before a handler sees them.
//
// A judged request costs, beside the limiter's own decision, some 200 ns and no
// allocation; the response fields of Draft11 take as much again, and two. Rules
// with an InFlight or LeakyBucket limit allocate, see [ratelimit.Limiter.Reserve].
// There is no goroutine behind it. The rules of the limiter may change at any
// time.
//
// A Middleware is safe for concurrent use; its zero value is not usable, call
// New.
type Middleware struct {
	limiter   *ratelimit.Limiter
	identity  Identity
	fields    map[string]func(*http.Request) string
	cost      func(*http.Request) uint64
	skip      func(*http.Request) bool
	headers   Headers
	jitter    time.Duration
	hideNames bool
	observe   func(*http.Request, Verdict)
	onRefused func(http.ResponseWriter, *http.Request, Verdict)

	plan    atomic.Pointer[plan]
	scratch sync.Pool // *state
}

// A plan is what the middleware makes of one Set.
type plan struct {
	set        *ratelimit.Set
	extractors []extractor
	client     bool // an extractor wants the client's text
	policies   ratelimitheader.Policies
}

// state is the memory of one request while it is judged.
type state struct {
	event       match.Event
	reservation *ratelimit.Reservation // its memory is reused
	outcomes    []ratelimit.Outcome
	clientText  []byte
	host        []byte
	user        []byte
	text        []byte // of headers, then of the body
}

// New returns a Middleware over l. The error names what cannot be in c, or a
// field that l's rules look at and no request has.
func New(l *ratelimit.Limiter, c Config) (*Middleware, error) {
	if l == nil {
		return nil, errors.New("the limiter is nil; make one with ratelimit.New or ratelimit.NewLimiter")
	}
	if c.Headers >= numHeaders {
		return nil, fmt.Errorf("Config.Headers: %d: must be Draft11, Legacy, LegacyEpoch or NoHeaders", c.Headers)
	}
	if c.Jitter < 0 || c.Jitter > time.Hour {
		return nil, fmt.Errorf("Config.Jitter: %v: must be 0 to 1h", c.Jitter)
	}
	for name, f := range c.Fields {
		if name == "" || f == nil {
			return nil, fmt.Errorf("Config.Fields: %q: must have a name and a function", name)
		}
	}
	m := &Middleware{
		limiter:   l,
		fields:    c.Fields,
		cost:      c.Cost,
		skip:      c.Skip,
		headers:   c.Headers,
		jitter:    c.Jitter,
		hideNames: c.HideNames,
		observe:   c.Observe,
		onRefused: c.OnRefused,
		scratch:   sync.Pool{New: func() any { return new(state) }},
	}
	if err := m.identity.finder.Init(clientaddr.Config(c.Identity), "IdentityConfig"); err != nil {
		return nil, err
	}
	if err := m.Check(l.Set()); err != nil {
		return nil, err
	}
	m.plan.Store(m.newPlan(l.Set()))
	return m, nil
}

// Identity returns how m tells clients apart: for its Stats, and for other
// parts of a program that need the same answer.
func (m *Middleware) Identity() *Identity { return &m.identity }

// Check returns an error that names a field that s's rules look at and m cannot
// fill in. Such a rule would never match. It is for callers that change the
// rules of a running limiter.
func (m *Middleware) Check(s *ratelimit.Set) error {
	_, err := newExtractors(s, m.fields)
	return err
}

// newPlan returns the plan of s. Fields that nothing fills in stay absent.
func (m *Middleware) newPlan(s *ratelimit.Set) *plan {
	p := &plan{set: s, policies: ratelimitheader.New(s, m.hideNames)}
	p.extractors, _ = newExtractors(s, m.fields)
	for _, f := range p.extractors {
		p.client = p.client || f.kind == extractClient
	}
	return p
}

// current returns the plan of the rules that the limiter has now.
func (m *Middleware) current() *plan {
	s, p := m.limiter.Set(), m.plan.Load()
	if p.set != s {
		p = m.newPlan(s)
		m.plan.Store(p)
	}
	return p
}

// Wrap returns a handler that judges requests and hands those that are admitted
// to next. The response writer is handed on as it is: flushing, hijacking and
// the like work.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, ok := m.Admit(w, r)
		if !ok {
			return
		}
		defer lease.Done()
		next.ServeHTTP(w, r)
	})
}

// Admit judges r, waits for its turn where a LeakyBucket queues it, and sets the
// response fields. When it reports true, the caller serves the request and then
// calls Done; when it reports false, the request was refused and has been
// answered. It is Wrap for frameworks that have no handler to wrap.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request) (lease Lease, admitted bool) {
	if m.skip != nil && m.skip(r) {
		return Lease{}, true
	}
	s := m.scratch.Get().(*state)
	p := m.current()
	v, lease := m.judge(p, s, r)
	if lease.reservation != nil {
		defer func() {
			if !admitted { // or the observer has panicked
				lease.cancel()
			}
		}()
		if v.Decision.Delay > 0 && !sleep(r.Context(), v.Decision.Delay) {
			v.giveUp()
		}
	}
	s.text = m.writeHeaders(w.Header(), p, &v, s.text)
	if m.observe != nil {
		m.observe(r, v)
	}
	if !v.Decision.Allowed {
		m.refuse(w, r, p, s, &v)
	}
	s.event.Reset() // lets go of the request
	m.scratch.Put(s)
	return lease, v.Decision.Allowed
}

// judge asks the limiter about r.
func (m *Middleware) judge(p *plan, s *state, r *http.Request) (v Verdict, lease Lease) {
	v.Set = p.set
	if p.client || m.observe != nil || m.onRefused != nil {
		v.Client = m.identity.Client(r)
		s.clientText = v.Client.AppendTo(s.clientText[:0])
	}
	s.fill(p.extractors, r)
	cost := uint64(1)
	if m.cost != nil {
		cost = m.cost(r)
	}
	lease.cost = cost
	if s.reservation == nil {
		s.reservation = new(ratelimit.Reservation)
	}
	reserved := s.reservation
	m.limiter.ReserveN(m.limiter.Now(), &s.event, cost, reserved)
	v.Decision = reserved.Decision
	s.outcomes = p.policies.Known(append(s.outcomes[:0], reserved.Outcomes()...), &v.Decision)
	if reserved.Open() {
		lease.reservation, s.reservation = reserved, nil
	}
	v.Outcomes = s.outcomes
	return v, lease
}
