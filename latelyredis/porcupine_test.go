package latelyredis_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
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
}

type verb uint8

const (
	opTake verb = iota
	opPeek
	opRefund
	opReset
	opBan
	opUnban
	verbs
)

// An opAnswer is the output of an operation.
type opAnswer struct {
	allowed, banned, started bool
	remaining                uint64
	taken                    uint64
	held                     bool
}

// A keyState is the sequential specification: what is known of one key.
type keyState struct {
	used, strikes uint64
	banned        bool
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

// step does op to s, and reports whether a is what it has to answer.
func step(s keyState, op operation, a opAnswer) (bool, keyState) {
	switch op.verb {
	case opTake:
		want := s.take(op.n)
		return a == want, s
	case opPeek:
		looked := s
		want := looked.take(op.n)
		// Of a ban that would begin, a look knows only that it refuses.
		return a.allowed == want.allowed && (want.started || a == want), s
	case opRefund:
		taken := min(op.n, s.used)
		s.used -= taken
		return a.taken == taken, s
	case opReset:
		s.used, s.strikes = 0, 0
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
	case opTake, opPeek:
		r := &latelyredis.Request{Set: rules, Cost: op.n, Peek: op.verb == opPeek, Subjects: subjects}
		s.Decide(ctx, []*latelyredis.Request{r})
		o := r.Subjects[0].Outcome
		a, err = opAnswer{allowed: !o.Refused, banned: o.Banned, started: o.Started, remaining: o.Remaining}, r.Err
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
	var now atomic.Int64
	now.Store(time.Now().UnixMicro())
	var stores []*latelyredis.Store
	for range 2 {
		s, err := latelyredis.NewAt(redis(t).client(t), rules, config, &now)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	const goroutines, operations = 5, 14
	var mu sync.Mutex
	var all []porcupine.Operation
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
				o := porcupine.Operation{ClientId: g, Input: op, Call: int64(time.Since(start))}
				o.Output = do(op, stores[g%2], rules)
				o.Return = int64(time.Since(start))
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return all
}

// TestLinearizable checks histories, and that those of a store that asks first and then takes
// are found to be wrong.
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
			if op.verb != opTake {
				return op.do(t, s, rules)
			}
			a := operation{opPeek, op.key, op.n}.do(t, s, rules)
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
	t.Error("no history is wrong of a store that asks first and then takes")
}
