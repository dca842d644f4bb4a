package ratelimit

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
)

// A Limiter decides whether events are allowed under the rules of a Set.
//
// Most callers need [Limiter.Take] only, or, to judge keys under one rule,
// [RuleLimiter.Take] of [Limiter.Rule]:
//
//	limiter, err := ratelimit.New(ratelimit.Rule{
//		Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{ratelimit.Per(100, time.Minute)},
//	})
//	...
//	var e match.Event
//	e.SetString(match.Client, r.RemoteAddr)
//	if d := limiter.Take(&e); !d.Allowed { ... }
//
// There are two ways to give a time, as in package window: without one, it is the current
// time; the form of a method with At takes the time as its first argument. A cost other
// than 1 needs TakeAt, with [Limiter.Now] for the present. The current time is the wall clock at construction plus
// the monotonic time since, so setting the clock changes no decision. Use one
// Limiter either with live time or with the times of a log, not with both.
//
// A decision with the memory store does not allocate, except for a new key or a
// key above 1 KiB. A Limiter is safe for concurrent use. Its zero value is not
// usable; call New or NewLimiter.
type Limiter struct {
	set     atomic.Pointer[Set]
	rules   atomic.Pointer[[]RuleLimiter] // of set
	memory  *memory                       // nil if processes share a store
	store   shared                        // nil if this is memory
	counts  store.Counters[*Set]          // memory or store
	timeout time.Duration                 // of a call of another store
	start   time.Time                     // with its monotonic reading
	base    int64                         // start as a time of events

	scratch sync.Pool // *scratch

	exempt atomic.Pointer[address.Set] // beside the allow list; nil: none

	// mu keeps updates and the making of local apart.
	mu sync.Mutex
	// local decides for rules that say so while the store is away.
	local     atomic.Pointer[memory]
	fallbacks atomic.Uint64
}

// Config configures a [Limiter]. Its zero value is the default: this process's
// memory, with a budget of 256 MiB.
//
// # Budget
//
// Keys, counts and bans never take more memory than the budget. When it is spent, a
// new key evicts keys of its rule: first keys whose windows are empty, then the keys
// that were judged longest ago. A key at half a limit or more is protected: it is
// not evicted while these events are in its windows. So every key that was just
// refused is protected. Current bans are not evicted: they have a table of their
// own, in which some places are reserved for bans by hand. When protected keys fill
// the budget, new keys share a sketch, which overcounts and never undercounts: it
// may refuse an event that should be allowed, and never allows one that should be
// refused. [Limiter.Stats] counts all of this.
//
// For each rule that counts it, a key takes 40 bytes and more, and its own length
// above 15, at a load of 60 to 75 %: with one limit of up to 128, 64 bytes with up to
// three times in it, and then 8 to 16 for each time; with one sliding limit above 128,
// some 280 bytes. docs/dev/proofs.md has a table.
type Config struct {
	// Store is the store that processes share, such as that of latelyredis.New for the same
	// Set; nil means this process's memory. The fields below StoreTimeout are about memory.
	Store store.Store[*Set, BanRecord]

	// StoreTimeout limits each call of Store, including the wait for a connection. After it,
	// OnStoreFailure of each rule decides. 0 means 20 ms. Calls of BanList that add or remove a
	// ban have 2 s, or StoreTimeout if that is longer.
	StoreTimeout time.Duration

	// Resolution is the precision of the times, if they were rounded down to it, as replay does
	// with the seconds of a log. A slot of a sliding window then leaves as soon as its last
	// possible time has left. Where slots are no wider than Resolution, decisions are the same as
	// with Exact. 0 means nanoseconds; the maximum is 10 years.
	Resolution time.Duration

	// Budget limits the memory, in bytes. 0 means 256 MiB. A negative value means no limit and no
	// eviction, for example to judge all events of one key before those of the next. The minimum
	// depends on the rules; the error of NewLimiter contains it.
	Budget int64

	// Bans is the maximum number of bans, including past bans that are remembered. A sixteenth of
	// them is reserved for bans that are added. 0 means a million.
	Bans int

	// JitterSeed makes the jitter of bans repeatable. 0 means a random one.
	JitterSeed uint64

	// OnBan, when not nil, is called with each ban that a rule begins, and each time that
	// Ban.Extend makes one longer. It is not called for bans that are added or imported, and
	// may not be called for a ban that is removed at that moment.
	//
	// It is called before the decision is returned, by the goroutine that decided, with nothing
	// locked. It may call the Limiter, delays the event that began the ban, and must be safe for
	// concurrent use. Bans of one key may be reported in another order than they began.
	OnBan func(BanRecord)
}

// defaultBudget is Config.Budget by default.
const defaultBudget = 256 << 20

// New returns a Limiter of rules in this process's memory.
func New(rules ...Rule) (*Limiter, error) {
	s, err := NewSet(SetConfig{}, rules...)
	if err != nil {
		return nil, err
	}
	return NewLimiter(s, Config{})
}

// NewLimiter returns a Limiter for the rules of s. The error names the first bad
// field of c and what it must be, such as the budget that the rules need.
func NewLimiter(s *Set, c Config) (*Limiter, error) {
	if c.StoreTimeout < 0 {
		return nil, fmt.Errorf("store timeout: %v: must be a time to wait, or 0 for %v", c.StoreTimeout, storeTimeout)
	}
	if c.Store != nil {
		l := newLimiter(s, c.Store, nil)
		l.timeout = cmp.Or(c.StoreTimeout, storeTimeout)
		return l, nil
	}
	m, err := newMemory(s, c, 1)
	if err != nil {
		return nil, err
	}
	return newLimiter(s, nil, m), nil
}

// newLimiter returns a Limiter over memory, or over a shared store if that is nil.
func newLimiter(s *Set, shared shared, memory *memory) *Limiter {
	start := time.Now()
	l := &Limiter{
		memory:  memory,
		store:   shared,
		counts:  shared,
		timeout: storeTimeout,
		start:   start,
		base:    keytable.Nanos(start, limit.MaxSpan),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	if memory != nil {
		l.counts = memory
	}
	l.use(s)
	// Memory refuses only keys that no store takes; the counts of other rules are
	// there.
	l.local.Store(memory)
	return l
}

// Set returns the current rules.
func (l *Limiter) Set() *Set { return l.set.Load() }

// Now returns the current time of the methods without a time: the wall clock at construction plus
// the monotonic time since.
func (l *Limiter) Now() time.Time { return l.start.Add(time.Since(l.start)) }

// Take judges e now and counts it once, under all rules that match it. It is
// short for TakeAt with the current time and a cost of 1.
func (l *Limiter) Take(e *match.Event) (d Decision) {
	l.decide(&d, &batch.Query{Event: e, Cost: 1}, l.now())
	return d
}

// TakeAt judges e at time t and charges the limits with a cost of n. It does not read
// e.Time. A cost of 0 only advances the windows: no limit refuses it, and it is
// not a hit for a ban. A time before 1720 or after 2220 is judged at that
// limit.
func (l *Limiter) TakeAt(t time.Time, e *match.Event, n uint64) (d Decision) {
	l.decide(&d, &batch.Query{Event: e, Cost: n}, nanos(t))
	return d
}

// Peek returns what Take would decide, and changes nothing: no count, no ban, no time.
//
// RetryAfter and ResetAfter are for a client that does not try now. If refused events count
// ([Rule.CountRefused], and a [Ban] after Hits), Take can return longer times, since it counts
// the event that it refuses.
func (l *Limiter) Peek(e *match.Event) (d Decision) {
	l.decide(&d, &batch.Query{Event: e, Cost: 1, Peek: true}, l.now())
	return d
}

func (l *Limiter) now() int64 { return l.base + int64(time.Since(l.start)) }

func nanos(t time.Time) int64 { return keytable.Nanos(t, limit.MaxSpan) }

// bytesOf returns the bytes of key, which nobody writes to.
func bytesOf(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }
