package ratelimit_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// Histories of clients that share a limiter are checked for linearizability: for each operation there must be an instant
// between its call and its return at which it is the next operation on an exact limit with a ban. Keys are checked
// separately; a change of rules is in the history of each.

// An operation is an input of the model. Times are in nanoseconds after the base.
type operation struct {
	verb verb
	key  int // -1: all
	at   int64
	cost int
	id   int // of a reservation
	rule porcupineRule
}

type verb uint8

const (
	opTake verb = iota
	opPeek
	opReserve
	opCancel
	opReset
	opBan   // until at
	opUnban // reports whether one held
	opUpdate
	opMove // what an event does first, see run
)

// porcupineRule is what changes: "N per span, or banned for".
type porcupineRule struct {
	n         int
	span, ban time.Duration
	algorithm ratelimit.Algorithm
}

const (
	porcupineStrikes    = 2 // refusals that are borne
	porcupineStrikeSpan = 15 * time.Second
)

func (p porcupineRule) rule(t testing.TB) ratelimit.Rule {
	r := limitRule(t, "r", per(uint64(p.n), p.span))
	r.Algorithm = p.algorithm
	r.Ban = &ratelimit.Ban{After: porcupineStrikes, Of: ratelimit.Refusals, Span: porcupineStrikeSpan, For: p.ban}
	return r
}

// An answer is the output of an operation.
type answer struct {
	allowed, held bool
	remaining     int
	until         int64 // of the ban that refused
}

// keyState is the sequential specification: the state of one key.
type keyState struct {
	rule    porcupineRule
	newest  int64
	log     []int64 // times of the allowed events, oldest first
	strikes []int64
	until   int64 // of a ban; 0: none
	open    []reserved
}

type reserved struct {
	id, cost int
	at       int64
}

func (s keyState) equal(o keyState) bool {
	return s.rule == o.rule && s.newest == o.newest && s.until == o.until &&
		slices.Equal(s.log, o.log) && slices.Equal(s.strikes, o.strikes) && slices.Equal(s.open, o.open)
}

var porcupineSeed = maphash.MakeSeed()

func (s keyState) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(porcupineSeed)
	maphash.WriteComparable(&h, [4]int64{s.newest, s.until, int64(s.rule.n), int64(len(s.open))})
	for _, t := range s.log {
		maphash.WriteComparable(&h, t)
	}
	return h.Sum64()
}

// after returns the times in (t-span, t]. It never changes times.
func after(times []int64, t int64, span time.Duration) []int64 {
	n := 0
	for n < len(times) && times[n] <= t-int64(span) {
		n++
	}
	return times[n:]
}

// moveTo judges at t, or at the newest time if that is later.
func (s *keyState) moveTo(t int64) {
	s.newest = max(s.newest, t)
	s.log = after(s.log, s.newest, s.rule.span)
	s.strikes = after(s.strikes, s.newest, porcupineStrikeSpan)
}

// take changes the state as Take must, and returns what Take must return.
func (s *keyState) take(op operation) (a answer) {
	s.moveTo(op.at)
	switch {
	case s.newest < s.until:
		return answer{until: s.until}
	case len(s.log)+op.cost <= s.rule.n:
		s.log = slices.Clone(s.log)
		for range op.cost {
			s.log = append(s.log, s.newest)
		}
		if op.verb == opReserve {
			s.open = append(slices.Clone(s.open), reserved{op.id, op.cost, s.newest})
		}
		return answer{allowed: true, remaining: s.rule.n - len(s.log)}
	case len(s.strikes) < porcupineStrikes:
		s.strikes = append(slices.Clone(s.strikes), s.newest)
		return answer{remaining: max(s.rule.n-len(s.log), 0)}
	}
	s.strikes = nil
	s.until = s.newest + int64(s.rule.ban)
	return answer{until: s.until}
}

// cancel takes back what a reservation has charged and is still there.
func (s *keyState) cancel(op operation) {
	i := slices.IndexFunc(s.open, func(r reserved) bool { return r.id == op.id })
	if i < 0 {
		return // it was refused, or reset
	}
	s.moveTo(op.at)
	r := s.open[i]
	s.open = slices.Delete(slices.Clone(s.open), i, i+1)
	left := r.cost
	s.log = slices.DeleteFunc(slices.Clone(s.log), func(t int64) bool {
		if t != r.at || left == 0 {
			return false
		}
		left--
		return true
	})
}

// porcupineStep applies op to s and reports whether a is the correct answer.
func porcupineStep(s keyState, op operation, a answer) (bool, keyState) {
	switch op.verb {
	case opTake, opReserve:
		before := s.until
		want := s.take(op)
		if s.until != before && a.until > want.until {
			a.until = want.until // a ban was added by hand meanwhile: the later end is reported
		}
		return a == want, s
	case opPeek:
		looked := s
		want := looked.take(op)
		// For a ban that would begin, a look only returns that it refuses.
		return a.allowed == want.allowed && (want.until != 0 || a == want), s
	case opCancel:
		s.cancel(op)
	case opMove:
		s.moveTo(op.at)
	case opReset:
		s.log, s.strikes, s.open = nil, nil, nil
	case opBan:
		s.until = max(s.until, op.at)
	case opUnban:
		if a.held != (s.until != 0) {
			return false, s
		}
		s.until = 0
	case opUpdate:
		if was := s.rule; was.n != op.rule.n || was.span != op.rule.span || was.algorithm != op.rule.algorithm {
			s.open = nil // a reservation is void
		}
		s.rule = op.rule
		s.log = after(s.log, s.newest, s.rule.span) // the rest is not carried
	}
	return true, s
}

// porcupineModel is the specification of keys keys under a first rule.
func porcupineModel(keys int, first porcupineRule) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, keys)
			for _, o := range history {
				for key := range parts {
					if of := o.Input.(operation).key; of == key || of < 0 {
						parts[key] = append(parts[key], o)
					}
				}
			}
			return parts
		},
		Init: func() any { return keyState{rule: first, newest: -1 << 62} },
		Step: func(state, input, output any) (bool, any) {
			return porcupineStep(state.(keyState), input.(operation), output.(answer))
		},
		Equal: func(a, b any) bool { return a.(keyState).equal(b.(keyState)) },
		Hash:  func(state any) uint64 { return state.(keyState).hash() },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v -> %+v", input, output)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// A workload is clients that share a limiter.
type workload struct {
	t       testing.TB
	limiter *ratelimit.Limiter
	base    int64
	clock   atomic.Int64 // that they read and set
	tick    atomic.Int64 // what orders calls and returns
	keys    int
}

const (
	porcupineClients = 6
	porcupineOps     = 16 // number of each
	porcupineKeys    = 2
)

func somePorcupineRule(rnd *rand.Rand) porcupineRule {
	return porcupineRule{
		n: 1 + rnd.IntN(5), span: time.Duration(1+rnd.IntN(3)) * 10 * time.Second, ban: time.Duration(1+rnd.IntN(2)) * 10 * time.Second,
		algorithm: ratelimit.Algorithm(rnd.IntN(2)), // sliding or exact
	}
}

// run performs the operations of the clients, and returns the history.
//
// An event moves the time of its key on before it is judged: at any instant of its call, so that another, earlier one may
// be judged between the two. Therefore it is in the history twice.
func (w *workload) run(rnd *rand.Rand) []porcupine.Operation {
	histories := make([][]porcupine.Operation, porcupineClients)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for client := range porcupineClients {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wg.Go(func() {
			<-start
			held := make(map[int]*ratelimit.Reservation)
			of := make(map[int]int) // their keys
			for i := range porcupineOps {
				op := w.next(mine, client*porcupineOps+i, held, of)
				o := porcupine.Operation{ClientId: client, Input: op, Call: w.tick.Add(1)}
				if mine.IntN(4) == 0 {
					runtime.Gosched() // on one core too, others do something during some calls
				}
				o.Output = w.do(op, held)
				o.Return = w.tick.Add(1)
				of[op.id] = op.key
				histories[client] = append(histories[client], o)
				if op.verb == opTake || op.verb == opReserve {
					op.verb = opMove
					o.Input, o.Output = op, answer{}
					histories[client] = append(histories[client], o)
				}
				if mine.IntN(2) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	close(start)
	wg.Wait()
	return slices.Concat(histories...)
}

// next returns an operation at random. It now and then moves the clock on, a
// little back as well.
func (w *workload) next(rnd *rand.Rand, id int, held map[int]*ratelimit.Reservation, of map[int]int) operation {
	if rnd.IntN(3) == 0 {
		w.clock.Add(rnd.Int64N(int64(5*time.Second)) - int64(time.Second))
	}
	op := operation{key: rnd.IntN(w.keys), at: w.clock.Load(), cost: 1 + rnd.IntN(2), id: id}
	switch n := rnd.IntN(40); {
	case n < 3:
		op.verb = opPeek
	case n < 8:
		op.verb = opReserve
	case n < 12:
		for op.id = range held {
			op.verb, op.key = opCancel, of[op.id]
			break
		}
	case n < 13:
		op.verb = opReset
	case n < 15:
		op.verb, op.at = opBan, int64(time.Minute)+w.clock.Load()
	case n < 17:
		op.verb = opUnban
	case n < 19:
		op.verb, op.key, op.rule = opUpdate, -1, somePorcupineRule(rnd)
	}
	return op
}

// do does op.
func (w *workload) do(op operation, held map[int]*ratelimit.Reservation) answer {
	key := fmt.Sprint("k", op.key)
	at := time.Unix(0, w.base+op.at)
	fail := func(err error) {
		if err != nil {
			w.t.Errorf("%+v: %v", op, err)
		}
	}
	switch op.verb {
	case opTake:
		return w.answer(takeKeyN(w.limiter, at, key, uint64(op.cost)))
	case opPeek:
		return w.answer(peekKeyN(w.limiter, at, key, uint64(op.cost)))
	case opReserve:
		r := reserveN(w.limiter, at, keyEvent(w.limiter, key), uint64(op.cost))
		held[op.id] = r
		return w.answer(r.Decision)
	case opCancel:
		fail(held[op.id].SettleAt(at, 0))
		delete(held, op.id)
	case opReset:
		fail(resetKey(w.limiter, key))
	case opBan:
		fail(w.limiter.Bans().Add(ratelimit.BanRecord{Rule: "r", Key: []string{key}, Until: at}))
	case opUnban:
		ok, err := w.limiter.Bans().Remove("r", key)
		fail(err)
		return answer{held: ok}
	case opUpdate:
		fail(w.limiter.Update(mustSet(w.t, op.rule.rule(w.t))))
	}
	return answer{}
}

func (w *workload) answer(d ratelimit.Decision) answer {
	a := answer{allowed: d.Allowed, remaining: int(d.Remaining)}
	if !d.BannedUntil.IsZero() {
		a.until = d.BannedUntil.UnixNano() - w.base
	}
	return a
}

// history returns one history of a limiter over the store that open returns.
func history(t testing.TB, rnd *rand.Rand, open func(m *ratelimit.Memory) ratelimit.Store) ([]porcupine.Operation, porcupine.Model) {
	first := somePorcupineRule(rnd)
	set := mustSet(t, first.rule(t))
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: 4 << 20, Bans: 100}))(t)
	w := &workload{t: t, limiter: ratelimit.Over(set, open(m)), keys: porcupineKeys}
	w.base = w.limiter.Now().UnixNano()
	w.clock.Store(int64(time.Minute)) // times are above 0
	return w.run(rnd), porcupineModel(porcupineKeys, first)
}

// longForm reports whether tests are to take their time:
//
//	LATELY_LONG=1 go test ./ratelimit -run 'Linearizable|NeverOver|RetryAfter|LiveRules' -timeout 1h
func longForm() bool { return os.Getenv("LATELY_LONG") != "" }

func itself(m *ratelimit.Memory) ratelimit.Store { return m }

// TestConcurrentLinearizable checks histories of the memory store: none is illegal, and the checker reaches a result for
// each.
func TestConcurrentLinearizable(t *testing.T) {
	rnd := randtest.New(t)
	histories, overlaps := 300, 0
	if longForm() {
		histories = 20_000
	}
	for i := range histories {
		ops, model := history(t, rnd, itself)
		overlaps += overlapping(ops)
		result, info := porcupine.CheckOperationsVerbose(model, ops, 30*time.Second)
		if result == porcupine.Ok {
			continue
		}
		t.Errorf("history %d is %s", i, result)
		if path := os.Getenv("LATELY_HISTORY"); path != "" {
			if err := porcupine.VisualizePath(model, info, path); err != nil {
				t.Error(err)
			}
		}
		return
	}
	if overlaps < histories {
		t.Errorf("of %d histories, %d operations on one key overlap: the test has no teeth", histories, overlaps)
	}
}

// overlapping returns how many pairs of operations of different clients on one key
// were done at the same time.
func overlapping(ops []porcupine.Operation) (n int) {
	for i, a := range ops {
		for _, b := range ops[:i] {
			if a.ClientId != b.ClientId && a.Call < b.Return && b.Call < a.Return && a.Input.(operation).key == b.Input.(operation).key {
				n++
			}
		}
	}
	return n
}

// checkThenAdd is a broken store: it looks, and then charges whatever others did
// meanwhile.
type checkThenAdd struct{ *ratelimit.Memory }

func (s checkThenAdd) Decide(_ context.Context, batch []*ratelimit.Request) {
	for _, r := range batch {
		r.Err = s.decided(r)
	}
}

func (s checkThenAdd) decided(r *ratelimit.Request) error {
	look := r.Peek
	r.Peek = true
	err := s.Memory.Decided(r)
	if r.Peek = look; look || err != nil || r.Subjects[0].Outcome.Refused {
		return err
	}
	runtime.Gosched()
	r.Subjects[0].Outcome.Charged = true
	return s.Memory.Settle(context.Background(), &ratelimit.Settlement{Set: r.Set, At: r.Now, Now: r.Now, Actual: r.Cost, Subjects: r.Subjects})
}

// TestConcurrentIllegalHistoriesAreCaught checks histories of broken stores.
func TestConcurrentIllegalHistoriesAreCaught(t *testing.T) {
	for name, open := range map[string]func(m *ratelimit.Memory) ratelimit.Store{
		"check, then add":   func(m *ratelimit.Memory) ratelimit.Store { return checkThenAdd{m} },
		"forgets at update": newForgetting,
	} {
		rnd := randtest.New(t)
		caught := false
		for i := 0; i < 50 && !caught; i++ {
			ops, model := history(t, rnd, open)
			caught = porcupine.CheckOperationsTimeout(model, ops, 30*time.Second) == porcupine.Illegal
		}
		if !caught {
			t.Errorf("%s: no history is illegal", name)
		}
	}
}
