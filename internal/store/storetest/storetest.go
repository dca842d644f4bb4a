// Package storetest is the conformance suite of a [store.Store]: each decision is one
// step, nothing is charged when a rule refuses, a refund takes back what was charged,
// bans last exactly as long as stated, and no clock, cost or key breaks this.
//
// The decisions of a store are compared with a model, which keeps a list of all
// events and evaluates all of them for each answer. The suite is used like
// testing/fstest and testing/slogtest.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB, set *ratelimit.Set) Store {
//			return mystore.New(set) // empty
//		}, storetest.Config{})
//	}
//
// The [Config] of a store says which guarantees it does not give. All others are checked
// in full.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// The types of the store of a limiter.
type (
	Store      = store.Store[*ratelimit.Set, ratelimit.BanRecord]
	Outcome    = store.Outcome[*ratelimit.Set]
	request    = store.Request[*ratelimit.Set]
	subject    = store.Subject[*ratelimit.Set]
	settlement = store.Settlement[*ratelimit.Set]
	adjustment = store.Adjustment[*ratelimit.Set]
)

// ctx is the context of all calls. Deadlines are tested with stores behind a network.
var ctx = context.Background()

// Open returns a store for set without counts and bans. It ends
// the test if it cannot. What has to be closed, it leaves to t.Cleanup.
type Open func(t testing.TB, set *ratelimit.Set) Store

// Config describes a store. Its zero value is a store that is atomic
// over any number of subjects, has every algorithm, and judges each request at the
// time that the request brings.
type Config struct {
	// SetClock sets the clock of a store that has its own, in nanoseconds since 1970. Such a clock
	// does not go back, and begins at about the present. nil means that the store judges at the
	// times that requests bring.
	SetClock func(now int64)

	// Resolution is what the times that the store judges at are multiples of, and
	// its slots count accordingly, see [ratelimit.Config]. A waiting time
	// may be longer by less than that. 0 means a nanosecond.
	Resolution time.Duration

	// Compensates means that a request about several subjects is judged one after
	// the other, and that what was charged meanwhile is taken back when a later
	// one refuses. Others may then be refused because of it, for a moment.
	Compensates bool

	// Leaves means that an update changes no counts: the counts of a rule that is removed, or gets
	// another key, expire later, and count again if the rule returns before.
	Leaves bool

	// Steps is how long random cases are. 0 means 150.
	Steps int

	// Seed makes the random cases repeatable. 0 means the seed of the test;
	// every failure prints it.
	Seed uint64
}

// A Case is one guarantee and how it is checked.
type Case struct {
	Name    string
	of      stores
	check   func(*check)
	Promise string // in a sentence
}

// stores reports whether a store gives a guarantee.
type stores func(Config) bool

func anyStore(Config) bool { return true }
func atOnce(c Config) bool { return !c.Compensates }

// Cases returns all cases, in the order in which [Run] runs them.
func Cases() []Case {
	return slices.Concat(limitCases, banCases, keyCases, updateCases, afterwardsCases, answerCases, refusedCases, concurrentCases)
}

// Run checks each case in a subtest of its name. One that the Config rules out is
// skipped.
func Run(t *testing.T, open Open, config Config) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if !c.of(config) {
				t.Skip("not promised by a store with this Config")
			}
			if err := c.Check(t, open, config); err != nil {
				t.Errorf("%s\n%v", c.Promise, err)
			}
		})
	}
}

// Check checks the case alone, if a store with this Config promises it, and returns what is wrong, nil if
// nothing. It calls t only to open stores, so that a test may expect an error.
func (c Case) Check(t testing.TB, open Open, config Config) error {
	if !c.of(config) {
		return nil
	}
	config.Steps = cmp.Or(config.Steps, 150)
	if config.Seed == 0 {
		config.Seed = randtest.Seed(t)
	}
	config.Resolution = max(config.Resolution, 1)
	ck := &check{t: t, open: open, config: config, rnd: rand.New(rand.NewPCG(config.Seed, 0))}
	ck.base = ck.begin().Truncate(config.Resolution).UnixNano()
	ck.run(c.check)
	if len(ck.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nseed %d, base time %v", errors.Join(ck.wrong...), config.Seed, time.Unix(0, ck.base).UTC())
}

// begin returns a time in some year, in half of all cases in the last days of a month: near it the periods of calendars end.
func (c *check) begin() time.Time {
	month := time.Date(2026, time.Month(1+c.rnd.IntN(48)), 1, 0, 0, 0, 0, time.UTC)
	if c.rnd.IntN(2) == 0 {
		return month.Add(-time.Duration(c.rnd.Int64N(int64(72 * time.Hour))))
	}
	return month.Add(time.Duration(c.rnd.Int64N(int64(28 * 24 * time.Hour))))
}

// A check is one run of a case.
type check struct {
	t      testing.TB
	open   Open
	config Config
	rnd    *rand.Rand
	base   int64 // the present, in nanoseconds since 1970

	mu    sync.Mutex
	wrong []error
}

// enough is how many complaints end a case.
const enough = 5

// stop is what ends a case early.
type stop struct{}

// run runs f until its end or the first fatal complaint.
func (c *check) run(f func(*check)) {
	defer func() {
		if r := recover(); r != nil && r != any(stop{}) {
			panic(r)
		}
	}()
	f(c)
}

// complain records what is wrong. Any goroutine may call it.
func (c *check) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < enough {
		c.wrong = append(c.wrong, fmt.Errorf(format, args...))
	}
}

// fatal complains and ends the case. It is for the goroutine of the case only.
func (c *check) fatal(format string, args ...any) {
	c.complain(format, args...)
	panic(stop{})
}

// must ends the case if err is not nil.
func (c *check) must(err error) {
	if err != nil {
		c.fatal("%w", err)
	}
}

// algorithms returns all algorithms except those in but.
func (c *check) algorithms(but ...ratelimit.Algorithm) (as []ratelimit.Algorithm) {
	for i := range limit.Algorithms() {
		if a := ratelimit.Algorithm(i); !slices.Contains(but, a) {
			as = append(as, a)
		}
	}
	return as
}
