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

// Config configures a [Middleware]. With the zero value, a client is the peer of its
// connection, and every request costs 1.
//
// The functions are called by the goroutines that serve requests, concurrently.
type Config struct {
	// Identity says which proxies to trust about the address of a client.
	Identity IdentityConfig

	// Fields adds event fields, such as "tenant", and replaces those that the
	// package would fill in, by the names that rules use. A function is called
	// only if the rules use its field; "" means that the request does not have
	// it.
	Fields map[string]func(*http.Request) string

	// Cost returns what a request costs; nil is 1 for each. Limits neither
	// refuse nor count a request of cost 0.
	Cost func(*http.Request) uint64

	// Skip reports whether a request passes without being judged, such as a
	// health check.
	Skip func(*http.Request) bool

	// Headers selects the response fields about limits.
	Headers Headers

	// Jitter is the most that is added at random to each Retry-After, in whole
	// seconds, so that clients of a limit that resets for all at one time do
	// not come back at one time. At most an hour.
	Jitter time.Duration

	// HideNames hides the names of rules from clients, which see "policy-1"
	// for the first rule of the Set, and so on.
	HideNames bool

	// Observe, if not nil, is called for every judged request, before it is
	// answered or served: for logs and metrics, and for what shadow rules
	// would have refused.
	Observe func(*http.Request, Verdict)

	// OnRefused, if not nil, writes status and body of refused requests.
	// RateLimit fields, Retry-After and Cache-Control are set.
	OnRefused func(http.ResponseWriter, *http.Request, Verdict)
}

// A Verdict is the outcome of one request.
type Verdict struct {
	// Client is the client that the Identity found, also if Config.Fields
	// replaces the field "client".
	Client Client

	// Decision is the decision under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes has the outcome of each matching rule, shadow rules included. If
	// the rules changed during the request, it has at most that of the deciding
	// rule. It is valid until the function that got the Verdict returns.
	Outcomes []ratelimit.Outcome

	// Set has the rules that the Rule numbers in Outcomes refer to.
	Set *ratelimit.Set
}

// A Middleware judges requests before a handler sees them.
//
// Apart from the limiter's decision, a judged request costs about 200 ns and no
// allocation; the response fields of Draft11 cost as much again, and two allocations.
// Rules with an InFlight or LeakyBucket limit allocate, see [ratelimit.Limiter.Reserve].
// The rules of the limiter may change at any time.
//
// A Middleware is safe for concurrent use. Make one with New; the zero value is not
// usable.
type Middleware struct {
	limiter  *ratelimit.Limiter
	config   Config
	identity Identity
	plan     atomic.Pointer[plan]
	scratch  sync.Pool // *state
}

// A plan is what the middleware derives from one Set.
type plan struct {
	set        *ratelimit.Set
	extractors []extractor
	client     bool // a rule reads the client
	policies   ratelimitheader.Policies
}

// state is the memory of one request while it is judged.
type state struct {
	event       match.Event
	reservation *ratelimit.Reservation // its memory is reused
	outcomes    []ratelimit.Outcome
	fields      fieldMemory
	text        []byte // of headers, then of the body
}

// New returns a Middleware over l. The error names a wrong field of c, or an event field
// that l's rules use and no request has.
func New(l *ratelimit.Limiter, c Config) (*Middleware, error) {
	if l == nil {
		return nil, errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
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
	m := &Middleware{limiter: l, config: c, scratch: sync.Pool{New: func() any { return new(state) }}}
	if err := m.identity.finder.Init(clientaddr.Config(c.Identity), "IdentityConfig"); err != nil {
		return nil, err
	}
	if err := m.Check(l.Set()); err != nil {
		return nil, err
	}
	m.plan.Store(m.newPlan(l.Set()))
	return m, nil
}

// Identity returns the Identity of m, for its Stats, and for other parts of a program
// that need the client.
func (m *Middleware) Identity() *Identity { return &m.identity }

// Check returns an error about a field that s's rules use and m cannot fill in: such a
// rule would never match. Call it before you change the rules of the limiter to s.
func (m *Middleware) Check(s *ratelimit.Set) error {
	_, err := newExtractors(s.Fields(), m.config.Fields)
	return err
}

// newPlan returns the plan of s. Fields that nothing fills in stay absent.
func (m *Middleware) newPlan(s *ratelimit.Set) *plan {
	p := &plan{set: s, policies: ratelimitheader.New(s, m.config.HideNames)}
	p.extractors, _ = newExtractors(s.Fields(), m.config.Fields)
	for _, f := range p.extractors {
		p.client = p.client || f.kind == fromClient
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

// Wrap returns a handler that judges requests and calls next for those that are
// admitted, with the same response writer, so that flushing and hijacking work.
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

// Admit is Wrap for frameworks without an http.Handler. It judges r, waits for its turn
// if a LeakyBucket queues it, and sets the response fields. If it reports true, serve
// the request and then call Done. If it reports false, the request has been answered.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request) (lease Lease, admitted bool) {
	if m.config.Skip != nil && m.config.Skip(r) {
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
	if m.config.Observe != nil {
		m.config.Observe(r, v)
	}
	if !v.Decision.Allowed {
		m.refuse(w, r, p, s, &v)
	}
	s.event.Reset() // releases the request
	m.scratch.Put(s)
	return lease, v.Decision.Allowed
}

// judge asks the limiter about r.
func (m *Middleware) judge(p *plan, s *state, r *http.Request) (v Verdict, lease Lease) {
	v.Set = p.set
	if p.client || m.config.Observe != nil || m.config.OnRefused != nil {
		v.Client = m.identity.Client(r)
	}
	s.fields.fill(&s.event, p.extractors, r, v.Client)
	lease.cost = 1
	if m.config.Cost != nil {
		lease.cost = m.config.Cost(r)
	}
	if s.reservation == nil {
		s.reservation = new(ratelimit.Reservation)
	}
	reserved := s.reservation
	m.limiter.ReserveN(m.limiter.Now(), &s.event, lease.cost, reserved)
	v.Decision = reserved.Decision
	s.outcomes = p.policies.Known(append(s.outcomes[:0], reserved.Outcomes...), &v.Decision)
	if reserved.Open() {
		lease.reservation, s.reservation = reserved, nil
	}
	v.Outcomes = s.outcomes
	return v, lease
}
