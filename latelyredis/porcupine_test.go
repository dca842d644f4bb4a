package latelyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Histories of goroutines that share a limit with a ban, by two stores with connections of
// their own, are checked for linearizability: each operation must be explained by an instant
// between its call and its return, at which it alone was done. No time passes in a history.

const (
	porcupineLimit   = 6
	porcupineStrikes = 2 // refusals that are borne
)

type operation struct {
	verb verb
	key  int
	n    uint64

	id      int // of a reservation of this key
	settles *latelyredis.Settlement
}

type verb uint8

const (
	opTake verb = iota
	opPeek
	opRefund
	opReset
	opBan
	opUnban
	opReserve
	opSettle
	verbs
)

// porcupineIDs is how many reservations of a key a history has at most.
const porcupineIDs = 64

// The state of a reservation in the specification, besides its cost.
const (
	reservationNone = 0
	reservationVoid = -1 // the key was reset
	reservationDone = -2
)

// An opAnswer is the output of an operation.
type opAnswer struct {
	allowed, banned, started bool
	remaining                uint64
	taken                    uint64
	held                     bool
}

// A keyState is the sequential specification: the state of one key.
type keyState struct {
	used, strikes uint64
	banned        bool
	reserved      [porcupineIDs]int8
}

// take is what Take has to answer, and does it.
func (s *keyState) take(n uint64) opAnswer {
	switch {
	case s.banned:
		return opAnswer{banned: true}
	case s.used+n <= porcupineLimit:
		s.used += n
		return opAnswer{allowed: true, remaining: porcupineLimit - s.used}
	case s.strikes < porcupineStrikes:
		s.strikes++
		return opAnswer{remaining: porcupineLimit - s.used}
	}
	s.strikes, s.banned = 0, true
	return opAnswer{banned: true, started: true}
}

// step applies op to s, and reports whether a is the correct answer.
func step(s keyState, op operation, a opAnswer) (bool, keyState) {
	switch op.verb {
	case opTake, opReserve:
		want := s.take(op.n)
		if op.verb == opReserve && want.allowed {
			s.reserved[op.id] = int8(op.n)
		}
		return a == want, s
	case opSettle:
		was := s.reserved[op.id]
		if was > 0 {
			s.used -= min(uint64(was)-op.n, s.used) // a refund may have taken some of it
		}
		s.reserved[op.id] = reservationDone
		return a.held == (was != reservationDone), s
	case opPeek:
		looked := s
		want := looked.take(op.n)
		// For a ban that would begin, a look only returns that it refuses.
		return a.allowed == want.allowed && (want.started || a == want), s
	case opRefund:
		taken := min(op.n, s.used)
		s.used -= taken
		return a.taken == taken, s
	case opReset:
		s.used, s.strikes = 0, 0
		for i := range s.reserved {
			if s.reserved[i] > 0 {
				s.reserved[i] = reservationVoid
			}
		}
	case opBan:
		s.banned = true
	case opUnban:
		held := s.banned
		s.banned = false
		return a.held == held, s
	}
	return true, s
}

var porcupineModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, o := range history {
			k := o.Input.(operation).key
			byKey[k] = append(byKey[k], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return keyState{} },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(keyState), input.(operation), output.(opAnswer))
	},
}

// do does an operation by a store.
func (op operation) do(t testing.TB, s *latelyredis.Store, rules *ratelimit.Set) (a opAnswer) {
	key, ctx := string(rune('a'+op.key)), context.Background()
	subjects := []latelyredis.Subject{about(0, key)}
	var err error
	switch op.verb {
	case opTake, opPeek, opReserve:
		r := &latelyredis.Request{Set: rules, Cost: op.n, Peek: op.verb == opPeek, Settled: op.verb == opReserve, Subjects: subjects}
		s.Decide(ctx, []*latelyredis.Request{r})
		o := r.Subjects[0].Outcome
		a, err = opAnswer{allowed: !o.Refused, banned: o.Banned, started: o.Started, remaining: o.Remaining}, r.Err
		if op.settles != nil {
			*op.settles = latelyredis.Settlement{Set: rules, At: r.Now, Charged: op.n, Subjects: r.Subjects, ID: fmt.Sprint("id", op.id), Ends: time.Now().Add(time.Hour)}
		}
	case opSettle:
		x := *op.settles
		x.Actual = op.n
		err = s.Settle(ctx, &x)
		a.held = !x.Again
	case opRefund:
		r := &latelyredis.Adjustment{Change: latelyredis.Refund, Set: rules, Key: []byte(key), N: op.n}
		err = s.Adjust(ctx, r)
		a.taken = r.Taken
	case opReset:
		err = s.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Reset, Set: rules, Key: []byte(key)})
	case opBan:
		err = s.Ban(ctx, ratelimit.BanRecord{Rule: "r", Key: []string{key}, Until: time.Now().Add(1000 * time.Hour)})
	case opUnban:
		a.held, err = s.Unban(ctx, "r", []byte(key))
	}
	if err != nil {
		t.Error(err)
	}
	return a
}

// history runs operations of some goroutines at once. do does one by one of two stores.
func history(t testing.TB, rnd *rand.Rand, do func(op operation, s *latelyredis.Store, rules *ratelimit.Set) opAnswer) []porcupine.Operation {
	r := limited("r", match.MustKey("path"), ratelimit.Exact, porcupineLimit)
	r.Ban = &ratelimit.Ban{After: porcupineStrikes, Of: ratelimit.Refusals, Span: time.Hour, For: 2 * time.Hour}
	rules, config := set(t, r), prefixed()
	now := clockAt(time.Now())
	var stores []*latelyredis.Store
	for range 2 {
		s := storeAt(t, redis(t).client(t), rules, config, now)
		stores = append(stores, s)
	}
	const goroutines, operations = 5, 14
	var mu sync.Mutex
	var all []porcupine.Operation
	var reservations []operation // that were allowed, to be settled
	var ids [2]int
	var done sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		done.Go(func() {
			for range operations {
				op := operation{verb: verb(rnd.IntN(int(verbs))), key: rnd.IntN(2), n: 1 + rnd.Uint64N(3)}
				if rnd.IntN(2) == 0 {
					op.verb = opTake
				}
				mu.Lock()
				switch {
				case op.verb == opReserve:
					op.id, op.settles = ids[op.key], new(latelyredis.Settlement)
					ids[op.key]++
				case op.verb == opSettle && len(reservations) > 0: // also one that was settled before
					op = reservations[rnd.IntN(len(reservations))]
					op.verb, op.n = opSettle, rnd.Uint64N(op.n+1)
				case op.verb == opSettle:
					op.verb = opTake
				}
				mu.Unlock()
				o := porcupine.Operation{ClientId: g, Input: op, Call: int64(time.Since(start))}
				o.Output = do(op, stores[g%2], rules)
				o.Return = int64(time.Since(start))
				mu.Lock()
				if op.verb == opReserve && o.Output.(opAnswer).allowed {
					reservations = append(reservations, op)
				}
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return all
}

// TestLinearizable checks histories, and that it rejects histories of a store that peeks and
// then takes.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories := 200
	if testing.Short() {
		histories = 20
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range histories {
		h := history(t, rnd, func(op operation, s *latelyredis.Store, rules *ratelimit.Set) opAnswer { return op.do(t, s, rules) })
		if result := porcupine.CheckOperationsTimeout(porcupineModel, h, time.Minute); result != porcupine.Ok {
			t.Fatalf("seed %d: a history is %v", seed, result)
		}
	}
	for i := range 1000 {
		h := history(t, rnd, func(op operation, s *latelyredis.Store, rules *ratelimit.Set) opAnswer {
			if op.verb != opTake && op.verb != opReserve {
				return op.do(t, s, rules)
			}
			a := operation{verb: opPeek, key: op.key, n: op.n}.do(t, s, rules)
			runtime.Gosched()
			if taken := op.do(t, s, rules); !a.allowed {
				return taken
			}
			return a
		})
		if porcupine.CheckOperationsTimeout(porcupineModel, h, time.Minute) == porcupine.Illegal {
			t.Logf("%d histories are legal; of a store that asks first and then takes, number %d is not", histories, i+1)
			return
		}
	}
	t.Error("no history of a store that inspects first and then takes is wrong")
}

// TestSettledTwiceIsFound checks that histories of a store that does not record settlements are found to be wrong.
func TestSettledTwiceIsFound(t *testing.T) {
	t.Parallel()
	rnd := randtest.New(t)
	for range 1000 {
		h := history(t, rnd, func(op operation, s *latelyredis.Store, rules *ratelimit.Set) opAnswer {
			if op.verb == opSettle {
				x := *op.settles
				x.ID = ""
				op.settles = &x
			}
			return op.do(t, s, rules)
		})
		if porcupine.CheckOperationsTimeout(porcupineModel, h, time.Minute) == porcupine.Illegal {
			return
		}
	}
	t.Error("no history is wrong of a store that settles twice")
}
