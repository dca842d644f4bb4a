package ratelimit_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bans "github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A banTarget is what readers and writers use: a table, a Limiter, or a control.
type banTarget interface {
	ban(i int)
	unban(i int) bool

	// banned is called by readers; each has a number.
	banned(reader, i int) bool
}

// tableTarget is the table alone.
type tableTarget struct {
	*bans.Table
	hashes []uint64
	keys   [][]byte
}

func newTableTarget(keys []string) *tableTarget {
	h := &tableTarget{Table: bans.NewTable(bans.Config{Most: 2 * len(keys)})}
	seed := maphash.MakeSeed()
	for _, key := range keys {
		h.hashes = append(h.hashes, maphash.String(seed, key)&^(0xff<<20)) // so that they meet in lines
		h.keys = append(h.keys, []byte(key))
	}
	return h
}

func (h *tableTarget) ban(i int) {
	h.Add(h.hashes[i], &bans.Ban{Rule: 1, Key: h.keys[i], Until: 1000, Source: bans.SourceRule, Memory: time.Hour}, 0)
}

func (h *tableTarget) unban(i int) bool { return h.Table.Remove(1, h.hashes[i], h.keys[i], 0) }

func (h *tableTarget) banned(_, i int) bool {
	_, ok := h.Until(1, h.hashes[i], h.keys[i], 0)
	return ok
}

// limiterTarget is a Limiter, by its verbs. Its readers take, in the two ways that a
// decision is made.
type limiterTarget struct {
	t    testing.TB
	l    *ratelimit.Limiter
	keys []string
}

func newLimiterTarget(t testing.TB, keys []string) *limiterTarget {
	client := must.Get(match.NewKey(match.Fold{Off: true}, "client"))(t)
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{Name: "r", Key: client, Limits: []ratelimit.Limit{{N: limit.MaxN, Span: time.Hour}}}))(t)
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Bans: 2 * len(keys)}))(t)
	return &limiterTarget{t, ratelimit.Over(set, m), keys}
}

func (h *limiterTarget) ban(i int) {
	if err := h.l.Bans().Add(ratelimit.BanRecord{Rule: "r", Key: []string{h.keys[i]}, Until: time.Now().Add(time.Hour), Source: bans.SourceRule}); err != nil {
		h.t.Error(err)
	}
}

func (h *limiterTarget) unban(i int) bool {
	held, err := h.l.Bans().Remove("r", h.keys[i])
	if err != nil {
		h.t.Error(err)
	}
	return held
}

func (h *limiterTarget) banned(reader, i int) bool {
	if reader%2 == 0 {
		return !h.l.Take(eventOf(h.keys[i])).Allowed
	}
	return !h.l.Peek(eventOf(h.keys[i])).Allowed
}

// oldAnswers is a control: its readers keep their answers for a while.
type oldAnswers struct {
	*tableTarget
	reads   [8]int
	answers [8]map[int]bool
}

func (h *oldAnswers) banned(reader, i int) bool {
	if h.reads[reader]++; h.reads[reader]%256 == 1 {
		h.answers[reader] = make(map[int]bool)
	}
	answer, ok := h.answers[reader][i]
	if !ok {
		answer = h.tableTarget.banned(reader, i)
		h.answers[reader][i] = answer
	}
	return answer
}

// lazyTarget is another control: a ban, and its end, come a little after the verb
// has returned.
type lazyTarget struct {
	*tableTarget
	mu    sync.Mutex
	queue []func()
}

func (h *lazyTarget) later(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.queue = append(h.queue, do); len(h.queue) > 2 {
		h.queue[0]()
		h.queue = h.queue[1:]
	}
}

func (h *lazyTarget) ban(i int) { h.later(func() { h.tableTarget.ban(i) }) }

func (h *lazyTarget) unban(i int) bool {
	h.later(func() { h.tableTarget.unban(i) })
	return true
}

func banReadKeys(n int) (keys []string) {
	for i := range n {
		key := fmt.Sprint("k", i)
		if i%4 == 0 {
			key = fmt.Sprintf("a key of more than fifteen bytes, number %d", i)
		}
		keys = append(keys, key)
	}
	return keys
}

// leastReads is how many answers of readers are judged at least.
const leastReads = 1000

// banReads has writers ban and unban keys, each its own, in waves that fill the target and empty it, so that it grows and
// shrinks, while readers look them up. An answer is wrong if the last verb for the key had returned before the lookup
// began, the next began after it returned, and the answer differs from what that verb left. Since a busy machine may run no
// reader during the waves, there are more waves until leastReads answers could be judged.
func banReads(rnd *rand.Rand, h banTarget, keys, waves int) (missed, haunted, sure, changes int64) {
	const writers, readers = 2, 3
	// For each key: the number of verbs that have begun and returned. If it is odd, one is running. A key is banned after
	// an odd number of verbs.
	states := make([]atomic.Uint64, keys)
	var newest [64]atomic.Int64 // keys that were changed last
	var nMissed, nHaunted, nSure, nChanges atomic.Int64
	var stop atomic.Bool
	var wrote, read sync.WaitGroup
	for w := range writers {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wrote.Go(func() {
			change := func(i int) {
				s := &states[i]
				banned := s.Add(1)/2%2 == 1
				if banned && !h.unban(i) {
					nMissed.Add(1)
				} else if !banned {
					h.ban(i)
				}
				s.Add(1)
				newest[nChanges.Add(1)%int64(len(newest))].Store(int64(i))
				if mine.IntN(16) == 0 {
					runtime.Gosched() // so that readers come between
				}
			}
			for wave := 0; wave < waves || nSure.Load() < leastReads; wave++ {
				for range keys / writers {
					i := mine.IntN(keys/writers)*writers + w
					if wave%3 == 2 || (states[i].Load()/2%2 == 1) == (wave%3 == 1) { // fill, empty, either
						change(i)
					}
				}
			}
		})
	}
	for r := range readers {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 2))
		read.Go(func() {
			for !stop.Load() {
				i := mine.IntN(keys)
				if mine.IntN(4) > 0 {
					i = int(newest[(nChanges.Load()-mine.Int64N(8)+64)%64].Load())
				}
				if mine.IntN(64) == 0 {
					runtime.Gosched()
				}
				before := states[i].Load()
				banned := h.banned(r, i)
				if after := states[i].Load(); before != after || before%2 == 1 {
					continue
				}
				nSure.Add(1)
				switch want := before/2%2 == 1; {
				case want && !banned:
					nMissed.Add(1)
				case !want && banned:
					nHaunted.Add(1)
				}
			}
		})
	}
	wrote.Wait()
	stop.Store(true)
	read.Wait()
	return nMissed.Load(), nHaunted.Load(), nSure.Load(), nChanges.Load()
}

// TestConcurrentBanIsSeen reads while bans are added and removed and the table grows and is emptied: a ban for which Ban
// has returned is never missed, and one for which Remove has returned is never seen again.
func TestConcurrentBanIsSeen(t *testing.T) {
	keys, waves := 4000, 12
	switch {
	case longForm():
		keys, waves = 40_000, 300
	case testing.Short():
		keys, waves = 1000, 6
	}
	names := banReadKeys(keys)
	for name, h := range map[string]banTarget{"table": newTableTarget(names), "limiter": newLimiterTarget(t, names)} {
		t.Run(name, func(t *testing.T) {
			missed, haunted, sure, changes := banReads(randtest.New(t), h, keys, waves)
			if missed+haunted > 0 {
				t.Errorf("of %d reads %d missed a ban and %d saw one that was unbanned", sure, missed, haunted)
			}
			if changes < int64(keys) {
				t.Errorf("%d reads, %d changes: the test has no teeth", sure, changes)
			}
			t.Logf("%d reads, %d changes: none wrong", sure, changes)
		})
	}
}

// TestConcurrentMissedBanIsDetected uses targets that answer from memory, and that
// ban and unban late.
func TestConcurrentMissedBanIsDetected(t *testing.T) {
	rnd := randtest.New(t)
	const keys = 1000
	names := banReadKeys(keys)
	for name, open := range map[string]func() banTarget{
		"old answers":      func() banTarget { return &oldAnswers{tableTarget: newTableTarget(names)} },
		"bans that linger": func() banTarget { return &lazyTarget{tableTarget: newTableTarget(names)} },
	} {
		caught := false
		for try := 0; try < 20 && !caught; try++ { // a machine may run one after the other
			missed, haunted, _, _ := banReads(rnd, open(), keys, 30)
			caught = missed > 0 && (haunted > 0 || name == "old answers")
		}
		if !caught {
			t.Errorf("%s: nobody notices", name)
		}
	}
}
