// Package storetest checks that a [store.Store] keeps its promises: that each
// decision is one step, that nothing is charged when a rule refuses, that what is
// given back is what was taken, that bans end when they say and not before, and
// that no clock, cost or key brings it out of step.
//
// It knows a Store by its documentation only. What a store decides is compared
// with a model of its own, which keeps every event and answers each question by
// looking at all of them. The idea of a suite for implementers is that of
// testing/fstest and testing/slogtest.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB, set *ratelimit.Set) Store {
//			return mystore.New(set) // empty, whatever was counted before
//		}, storetest.Config{})
//	}
//
// A store that cannot hold to all of it says so in its [Config]; the promises that
// are left are then checked no less strictly.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

// What a store of a limiter's is asked.
type (
	Store      = store.Store[*ratelimit.Set, ratelimit.BanRecord]
	Outcome    = store.Outcome[*ratelimit.Set]
	request    = store.Request[*ratelimit.Set]
	subject    = store.Subject[*ratelimit.Set]
	settlement = store.Settlement[*ratelimit.Set]
	adjustment = store.Adjustment[*ratelimit.Set]
)

// ctx is the context of all calls. How a store holds to a deadline is tested where
// there is a network.
var ctx = context.Background()

// Open returns a store for set that has counted nothing and bans nobody. It ends
// the test if it cannot. What has to be closed, it leaves to t.Cleanup.
type Open func(t testing.TB, set *ratelimit.Set) Store

// Config is what a store says of itself. Its zero value is a store that is atomic
// over any number of subjects, has every algorithm, and judges each request at the
// time that the request brings.
type Config struct {
	// Pass lets d pass, for a store that judges at a clock of its own: it moves
	// that clock, or waits. Times of requests then mean nothing to the store, and
	// cases about clocks that jump are left out. nil says that the store judges
	// at the times that requests bring.
	Pass func(d time.Duration)

	// Unit is the span that most cases count in. 0 means a second, or with Pass
	// 50 ms. At least 5 ms.
	Unit time.Duration

	// Resolution is what the times that the store judges at are multiples of, and
	// its slots count accordingly, see [ratelimit.Config]. A waiting time
	// may be longer by less than that. 0 means a nanosecond.
	Resolution time.Duration

	// Compensates says that a request about several subjects is judged one after
	// the other, and that what was charged meanwhile is taken back when a later
	// one refuses. Others may then be refused because of it, for a moment.
	Compensates bool

	// Algorithms are those that the store has. nil means all.
	Algorithms []ratelimit.Algorithm

	// Rounds is how many times as long the random cases are. 0 means 1.
	Rounds int

	// Seed makes the random cases repeatable. 0 means a random one, which is
	// part of every complaint.
	Seed uint64
}

// A Case is one promise and how it is checked.
type Case struct {
	Name    string
	Promise string // in a sentence

	check func(*check)
	timed bool // it sets the clock
}

// Cases returns all cases, in the order in which [Run] runs them.
func Cases() []Case {
	return slices.Concat(limitCases, ruleCases, settleCases, banCases, keyCases, timeCases, updateCases, concurrentCases)
}

// Run checks each case in a subtest of its name. One that the Config rules out is
// skipped.
func Run(t *testing.T, open Open, config Config) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if !c.Applies(config) {
				t.Skip("not promised by a store with this Config")
			}
			if err := c.Check(t, open, config); err != nil {
				t.Errorf("%s\n%v", c.Promise, err)
			}
		})
	}
}

// Applies reports whether a store with that Config promises what c checks.
func (c Case) Applies(config Config) bool {
	switch {
	case c.timed:
		return config.Pass == nil
	case c.Name == "OwnClock":
		return config.Pass != nil
	case c.Name == "PartialCharge":
		return !config.Compensates
	}
	return true
}

// Check checks the case alone, if it applies, and returns what is wrong, nil if
// nothing. It calls t for nothing but to open stores, so that a test may expect an
// error.
func (c Case) Check(t testing.TB, open Open, config Config) error {
	if !c.Applies(config) {
		return nil
	}
	if config.Rounds == 0 {
		config.Rounds = 1
	}
	if config.Seed == 0 {
		config.Seed = rand.Uint64()
	}
	if config.Unit == 0 {
		config.Unit = time.Second
		if config.Pass != nil {
			config.Unit = 50 * time.Millisecond
		}
	}
	config.Resolution = max(config.Resolution, 1)
	ck := &check{t: t, open: open, config: config, rnd: rand.New(rand.NewPCG(config.Seed, 0)), base: time.Now().UnixNano()}
	ck.run(c.check)
	if len(ck.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nseed %d, base time %d", errors.Join(ck.wrong...), config.Seed, ck.base)
}

// A check is one run of a case.
type check struct {
	t      testing.TB
	open   Open
	config Config
	rnd    *rand.Rand
	base   int64 // about when the first request is

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

// complain says what is wrong. It may be called by any goroutine.
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

// algorithms returns those that the store has, without the ones in but.
func (c *check) algorithms(but ...ratelimit.Algorithm) []ratelimit.Algorithm {
	var as []ratelimit.Algorithm
	for i := range ratelimit.Algorithms() {
		a := ratelimit.Algorithm(i)
		if c.config.Algorithms != nil && !slices.Contains(c.config.Algorithms, a) {
			continue
		}
		if !slices.Contains(but, a) {
			as = append(as, a)
		}
	}
	return as
}

// counting returns the algorithm that cases use which are not about algorithms,
// and the name of the strictest that the store has.
func (c *check) counting() ratelimit.Algorithm {
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact} {
		if slices.Contains(c.algorithms(), a) {
			return a
		}
	}
	return c.algorithms()[0]
}
