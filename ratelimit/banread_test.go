package ratelimit

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
)

// A banHouse is what readers and writers meet in: a table, a Limiter, or a control.
type banHouse interface {
	ban(i int)
	unban(i int) bool

	// banned is asked by a reader, each of whom has a number.
	banned(reader, i int) bool
}

// tableHouse is the table alone.
type tableHouse struct {
	*banTable
	hashes []uint64
	keys   [][]byte
}

func newTableHouse(keys []string) *tableHouse {
	h := &tableHouse{banTable: newBanTable(banTableConfig{most: 2 * len(keys)})}
	seed := maphash.MakeSeed()
	for _, key := range keys {
		h.hashes = append(h.hashes, maphash.String(seed, key)&^(0xff<<20)) // so that they meet in lines
		h.keys = append(h.keys, []byte(key))
	}
	return h
}

func (h *tableHouse) ban(i int) {
	h.add(h.hashes[i], &heldBan{rule: 1, key: h.keys[i], until: 1000, source: sourceRule}, time.Hour, 0)
}

func (h *tableHouse) unban(i int) bool { return h.banTable.remove(1, h.hashes[i], h.keys[i], 0) }

func (h *tableHouse) banned(_, i int) bool {
	_, ok := h.holds(1, h.hashes[i], h.keys[i], 0)
	return ok
}

// limiterHouse is a Limiter, by its verbs. Its readers take, in the two ways that a
// decision is made.
type limiterHouse struct {
	t    testing.TB
	l    *Limiter
	keys []string
}

func newLimiterHouse(t testing.TB, keys []string) *limiterHouse {
	client, err := match.NewKey(match.Fold{Off: true}, "client")
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet(SetConfig{}, Rule{Name: "r", Key: client, Limits: []Limit{{N: MaxSliding, Span: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMemory(set, Config{Bans: 2 * len(keys)})
	if err != nil {
		t.Fatal(err)
	}
	return &limiterHouse{t, Over(set, m), keys}
}

func (h *limiterHouse) ban(i int) {
	if err := h.l.Bans().Add(BanRecord{Rule: "r", Key: []string{h.keys[i]}, Until: time.Now().Add(time.Hour), Source: sourceRule}); err != nil {
		h.t.Error(err)
	}
}

func (h *limiterHouse) unban(i int) bool {
	held, err := h.l.Bans().Remove("r", h.keys[i])
	if err != nil {
		h.t.Error(err)
	}
	return held
}

func (h *limiterHouse) banned(reader, i int) bool {
	if reader%2 == 0 {
		return !h.l.Take(clientEvent(h.keys[i])).Allowed
	}
	return !h.l.Peek(clientEvent(h.keys[i])).Allowed
}

// oldIndexHouse is a control: its readers keep an index for a while, and do not see
// what is added after it was replaced.
type oldIndexHouse struct {
	*tableHouse
	reads   [8]int
	indexes [8]map[*banShard]*banIndex
}

func (h *oldIndexHouse) banned(reader, i int) bool {
	if h.reads[reader]++; h.reads[reader]%256 == 1 {
		h.indexes[reader] = make(map[*banShard]*banIndex)
	}
	s := h.shard(h.hashes[i])
	ix := h.indexes[reader][s]
	if ix == nil {
		if ix = s.index.Load(); ix == nil {
			return false
		}
		h.indexes[reader][s] = ix
	}
	_, until, _ := h.search(ix, 1, h.hashes[i], h.keys[i])
	return until > 0
}

// lazyHouse is another control: a ban, and its end, come a little after the verb
// has returned.
type lazyHouse struct {
	*tableHouse
	mu    sync.Mutex
	queue []func()
}

func (h *lazyHouse) later(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.queue = append(h.queue, do); len(h.queue) > 2 {
		h.queue[0]()
		h.queue = h.queue[1:]
	}
}

func (h *lazyHouse) ban(i int) { h.later(func() { h.tableHouse.ban(i) }) }

func (h *lazyHouse) unban(i int) bool {
	h.later(func() { h.tableHouse.unban(i) })
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

// banReads has writers ban and unban keys, each its own, in waves that fill the
// house and empty it, so that it grows and shrinks, while readers ask. An answer is
// wrong if the last verb about the key had returned before the question, the next
// one came after the answer, and the answer is not what that verb left.
func banReads(rnd *rand.Rand, h banHouse, keys, waves int) (missed, haunted, sure, changes int64) {
	const writers, readers = 2, 3
	// Of each key: how many verbs have begun and returned, twice; if that is odd
	// one is under way. A key is banned after an odd number of them.
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
			for wave := range waves {
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

// TestBanIsSeen has readers ask while bans are added and unbanned and the table grows
// and is emptied: a ban that Ban has returned from is never missed, and one that
// Lift has returned from is never seen again.
func TestBanIsSeen(t *testing.T) {
	keys, waves := 4000, 12
	switch {
	case longTests():
		keys, waves = 40_000, 300
	case underRace:
		keys, waves = 1000, 6
	}
	names := banReadKeys(keys)
	for name, h := range map[string]banHouse{"table": newTableHouse(names), "limiter": newLimiterHouse(t, names)} {
		t.Run(name, func(t *testing.T) {
			missed, haunted, sure, changes := banReads(banRandom(t), h, keys, waves)
			if missed+haunted > 0 {
				t.Errorf("of %d reads %d missed a ban and %d saw one that was unbanned", sure, missed, haunted)
			}
			if sure < 1000 || changes < int64(keys) {
				t.Errorf("%d reads, %d changes: the test has no teeth", sure, changes)
			}
			t.Logf("%d reads, %d changes: none wrong", sure, changes)
		})
	}
}

// TestBanThatIsMissedIsCaught asks houses that answer from an index of before, and
// that ban and unban late.
func TestBanThatIsMissedIsCaught(t *testing.T) {
	rnd := banRandom(t)
	const keys = 1000
	names := banReadKeys(keys)
	for name, open := range map[string]func() banHouse{
		"an old index":     func() banHouse { return &oldIndexHouse{tableHouse: newTableHouse(names)} },
		"bans that linger": func() banHouse { return &lazyHouse{tableHouse: newTableHouse(names)} },
	} {
		caught := false
		for try := 0; try < 20 && !caught; try++ { // a machine may run one after the other
			missed, haunted, _, _ := banReads(rnd, open(), keys, 30)
			caught = missed > 0 && (haunted > 0 || name == "an old index")
		}
		if !caught {
			t.Errorf("%s: nobody notices", name)
		}
	}
}

func clientEvent(key string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, key)
	return e
}
