package latelyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/httpfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Config configures a [Middleware]. With the zero value, a client is the peer of its
// connection, and every request costs 1.
//
// The functions are called by the goroutines that serve requests, concurrently.
type Config struct {
	// Identity configures which proxies are trusted about the address of a client.
	Identity IdentityConfig

	// Fields adds event fields, such as "tenant", and replaces those that the
	// package would fill in, by the names that rules use. A function is called
	// only if the rules use its field; "" means that the request does not have
	// it.
	Fields map[string]func(*http.Request) string

	// Cost returns the cost of a request; nil means 1. Limits neither refuse
	// nor count a request of cost 0.
	Cost func(*http.Request) uint64

	// Skip reports whether a request passes without being judged, such as a
	// health check.
	Skip func(*http.Request) bool

	// Headers selects the response fields about limits.
	Headers Headers

	// Jitter adds a random time up to Jitter to each Retry-After, in whole
	// seconds and at most an hour, so that clients whose limit resets at the
	// same time do not return at the same time.
	Jitter time.Duration

	// HideNames hides the names of rules from clients, which see "policy-1"
	// for the first rule of the Set, and so on.
	HideNames bool

	// HashKey is the secret key for digests of fields that [ratelimit.SetConfig.Fields]
	// declares as hashed. Processes that share a store need the same key. Zero means the
	// key that the store holds for them; New and Check return the error of a store that does not
	// answer. Without a shared store, zero means a random key for this process, so digests change
	// at each start.
	HashKey [32]byte

	// Observe, if not nil, is called for every judged request, before it is
	// answered or served: for logs, metrics and the decisions of shadow rules.
	Observe func(*http.Request, Verdict)

	// Page, if not nil, is the body of refusals for clients that prefer HTML to JSON, such as
	// browsers. Other clients get a problem document (RFC 9457), as do all if Page is nil.
	Page *Page

	// OnRefused, if not nil, writes status and body of refused requests. RateLimit fields,
	// Retry-After, WWW-Authenticate and Cache-Control are set. It cannot be set with Page.
	OnRefused func(http.ResponseWriter, *http.Request, Verdict)
}

// A Verdict is the decision about one request, for the functions of [Config].
type Verdict struct {
	// Client is the client that the Identity found, also if Config.Fields
	// replaces the field "client".
	Client Client

	// Decision is the decision under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes has the outcome of each matching rule, shadow rules included. If
	// the rules changed during the request, it has at most the outcome of the deciding
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
	config   Config
	identity *Identity
	rules    middleware.Rules[*httpfield.Source]
	scratch  sync.Pool // *state
}

// A plan is what the middleware derives from one Set.
type plan = middleware.Plan[*httpfield.Source]

// state is the memory of one request while it is judged.
type state struct {
	middleware.Request
	source httpfield.Source
	sender sender
	cost   uint64

	status, size, duration []byte // of the answer
}

// begin sets the request, whose client id finds.
func (s *state) begin(r *http.Request, id *Identity) {
	s.sender.request, s.sender.identity = r, id
	s.source.Request, s.source.Client = r, &s.sender
}

// New returns a Middleware over l. The error names a wrong field of c, or an event field
// that l's rules use and no request has.
func New(l *ratelimit.Limiter, c Config) (*Middleware, error) {
	m := &Middleware{config: c, scratch: sync.Pool{New: func() any { return new(state) }}}
	if c.Headers >= numHeaders {
		return nil, fmt.Errorf("Config.Headers: %d: must be Draft11, Legacy, LegacyEpoch or NoHeaders", c.Headers)
	}
	if c.Jitter < 0 || c.Jitter > time.Hour {
		return nil, fmt.Errorf("Config.Jitter: %v: must be 0 to 1h", c.Jitter)
	}
	if c.Page != nil && c.OnRefused != nil {
		return nil, errors.New("Config.Page and Config.OnRefused: both set: must be one of them")
	}
	if err := middleware.CheckFields(c.Fields); err != nil {
		return nil, err
	}
	var err error
	if m.identity, err = NewIdentity(c.Identity); err != nil {
		return nil, err
	}
	if err := m.rules.Init(l, c.HideNames, c.HashKey, httpfield.Finder(c.Fields)); err != nil {
		return nil, err
	}
	if err := m.Check(l.Set()); err != nil {
		return nil, err
	}
	return m, nil
}

// Identity returns the Identity of m, for its Stats, and for other parts of a program
// that need the client.
func (m *Middleware) Identity() *Identity { return m.identity }

// Check returns an error if the rules of s use a field that m cannot fill in: such a
// rule would never match. Call it before you change the rules of the limiter to s.
func (m *Middleware) Check(s *ratelimit.Set) error {
	if err := m.rules.Check(s); err != nil {
		return err
	}
	for _, r := range s.Rules() {
		for _, name := range keyvalue.Fields(r.Key) {
			if eventfield.IsOfAnswer(name) && m.config.Fields[name] == nil {
				return fmt.Errorf("rule %q: field %q in its key: unknown when a request comes: must be in when, or in Config.Fields", r.Name, name)
			}
		}
	}
	return nil
}

// Wrap returns a handler that judges requests and calls next for those that are
// allowed, with the same response writer, so that flushing and hijacking work.
//
// If rules count answers (their condition has status, size or duration), next gets a writer that records the answer,
// with Flush and Hijack if the original has them, and Unwrap for [http.ResponseController]. The answer is counted
// when next has returned: with status 200 if it has written none, 101 if it has hijacked the connection, and 500
// if it has panicked before it wrote one.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, ok := m.Allow(w, r)
		if !ok {
			return
		}
		defer lease.Done()
		if lease.answer == nil {
			next.ServeHTTP(w, r)
			return
		}
		rec, recording := record(w)
		defer func() { lease.Answer(rec.answer()) }()
		next.ServeHTTP(recording, r)
		rec.returned = true
	})
}

// Allow is Wrap for frameworks without an http.Handler. It judges r, waits for its turn
// if a LeakyBucket queues it, and sets the response fields. If it reports true, serve
// the request and then call Answer and Done. If it reports false, the request has been answered.
func (m *Middleware) Allow(w http.ResponseWriter, r *http.Request) (lease Lease, allowed bool) {
	if m.config.Skip != nil && m.config.Skip(r) {
		return Lease{}, true
	}
	s := m.scratch.Get().(*state)
	s.begin(r, m.identity)
	p := m.rules.Plan()
	v, held := m.judge(p, s)
	defer func() {
		if !allowed { // or the observer has panicked
			held.Cancel()
		}
	}()
	if v.Decision.Delay > 0 && wait.Within(r.Context(), v.Decision.Delay) != nil {
		v.giveUp()
	}
	s.Text = m.writeHeaders(w.Header(), p, &v, s.Text)
	if m.config.Observe != nil {
		m.config.Observe(r, v)
	}
	if !v.Decision.Allowed {
		m.refuse(w, r, p, s, &v)
	}
	if v.Decision.Allowed && s.Event.Part == match.Request {
		return Lease{held, &openAnswer{m: m, plan: p, state: s, start: time.Now()}}, true
	}
	m.release(s)
	return Lease{held, nil}, v.Decision.Allowed
}

// release keeps the memory of s for another request.
func (m *Middleware) release(s *state) {
	s.Reset()
	s.source.Request, s.sender = nil, sender{}
	m.scratch.Put(s)
}

// judge decides about the request of s.
func (m *Middleware) judge(p *plan, s *state) (v Verdict, held middleware.Lease) {
	v.Set = p.Set
	if m.config.Observe != nil || m.config.OnRefused != nil {
		v.Client = s.sender.client()
	}
	p.Fill(&s.Request, &s.source)
	if p.Answers && !eventfield.HasAnswer(&s.Event) {
		s.Event.Part = match.Request
	}
	s.cost = 1
	if m.config.Cost != nil {
		s.cost = m.config.Cost(s.source.Request)
	}
	v.Decision, v.Outcomes, held = m.rules.Reserve(p, &s.Request, s.cost)
	return v, held
}

// A Lease is a request that was allowed and must be ended with Done. The zero
// Lease needs no Done.
type Lease struct {
	lease  middleware.Lease
	answer *openAnswer // nil if no rule counts answers
}

// Answer counts the answer to the request, with a body of size bytes, under the rules that count
// answers. It must be called before Done, once the status is known; otherwise the answer does not
// count. Calls after the first, or after Done, do nothing.
func (l Lease) Answer(status int, size int64) {
	if l.answer != nil {
		l.answer.count(status, size)
	}
}

// Done ends the request: its place under a limit with [ratelimit.InFlight] is free again.
// It must be called, also if the handler panics; otherwise the request counts until the
// limit's span is over. Calls after the first do nothing.
func (l Lease) Done() {
	if l.answer != nil {
		l.answer.end()
	}
	l.lease.Done()
}

// giveUp makes v a refusal of a request that cannot wait for its turn.
func (v *Verdict) giveUp() {
	v.Decision.Allowed, v.Decision.RetryAfter = false, v.Decision.Delay
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Delay > 0 {
			o.Refused, o.RetryAfter = true, o.Delay
		}
	}
}
