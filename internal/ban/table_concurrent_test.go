package ban

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBanTableConcurrently has writers begin, add, unban and expire bans in a table that is full most of the time, and
// grows, while readers look them up. Some keys are banned from before the start to the end: every answer about them must be
// yes. Some never: no. The end of each ban is unique to its key, so that an answer with another key's end is found.
func TestBanTableConcurrently(t *testing.T) {
	d := 400 * time.Millisecond
	if longTests() {
		d = time.Minute
	}
	const most, fixed, churn, names = 3000, 500, 20_000, 1 << 16
	rnd := random(t)
	table := newTable(Config{}, most, 200)
	seed := maphash.MakeSeed()
	keys := make([][]byte, fixed+churn+fixed) // banned throughout, now and then, never
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%d", i)
		if i%3 == 0 {
			keys[i] = fmt.Appendf(nil, "2001:db8:aaaa:%x::/64", i)
		}
	}
	end := func(at int64, i int) int64 { return at - at%names + names + int64(i) } // later than at
	hash := func(i int) uint64 { return maphash.Bytes(seed, keys[i]) &^ (0xff << 26) }
	for i := range fixed {
		ban := Ban{Rule: 1, Key: keys[i], Until: end(int64(time.Hour), i), Source: SourceManual}
		if got := table.Add(hash(i), &ban, 0); got != Added {
			t.Fatal(got)
		}
	}
	var now, reads, changes atomic.Int64
	stop := make(chan struct{})
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	var wg sync.WaitGroup
	for range 3 {
		s1, s2 := rnd.Uint64(), rnd.Uint64()
		wg.Go(func() { // writes
			rnd := rand.New(rand.NewPCG(s1, s2))
			for running() {
				at := now.Add(rnd.Int64N(2000))
				i := fixed + rnd.IntN(churn)
				switch op := rnd.IntN(20); {
				case op < 12:
					ban := Ban{Rule: 1, Key: keys[i], Until: end(at+rnd.Int64N(4e6), i), Source: SourceRule, Memory: 1e6}
					if op < 2 {
						ban.Source = SourceManual
					}
					table.Add(hash(i), &ban, at)
				case op < 18:
					table.Remove(1, hash(i), keys[i], at)
				case op == 18 && rnd.IntN(50) == 0:
					expireAll(table, at)
				}
				changes.Add(1)
			}
		})
	}
	for range 2 {
		s1, s2 := rnd.Uint64(), rnd.Uint64()
		wg.Go(func() { // reads
			rnd := rand.New(rand.NewPCG(s1, s2))
			for running() {
				i := rnd.IntN(len(keys))
				if rnd.IntN(2) == 0 {
					i = rnd.IntN(fixed)
				}
				until, ok := table.Until(1, hash(i), keys[i], now.Load())
				switch {
				case i < fixed && !ok:
					t.Errorf("key %d is banned, but not found", i)
				case i >= fixed+churn && ok:
					t.Errorf("key %d is not banned, but found", i)
				case ok && until%names != int64(i):
					t.Errorf("key %d is found banned until %d, which is an end of key %d", i, until, until%names)
				default:
					reads.Add(1)
					continue
				}
				return
			}
		})
	}
	wg.Go(func() { // lists
		for running() {
			for ban := range table.All(now.Load()) {
				if i := ban.Until % names; string(ban.Key) != string(keys[i]) || ban.Rule != 1 {
					t.Errorf("a ban of key %s is listed with an end of key %d", ban.Key, i)
					return
				}
			}
		}
	})
	time.AfterFunc(d, func() {
		for (reads.Load() == 0 || changes.Load() == 0) && !t.Failed() { // a busy machine may not have run all by then
			runtime.Gosched()
		}
		close(stop)
	})
	wg.Wait()
	checkTable(t, table)
	c := table.Counts(now.Load())
	t.Logf("%d reads, %d changes, %+v", reads.Load(), changes.Load(), c)
	if c.Len < fixed || reads.Load() == 0 || changes.Load() == 0 {
		t.Errorf("%d bans are left, after %d reads and %d changes", c.Len, reads.Load(), changes.Load())
	}
}

// TestConcurrentOneHash bans and unbans three keys in turn, which all have one hash, while a reader looks each of them up:
// it never gets the end of another's ban.
func TestConcurrentOneHash(t *testing.T) {
	d := 300 * time.Millisecond
	if longTests() {
		d = 10 * time.Second
	}
	const hash = 1 << 40
	long := []byte("a key of more than fifteen bytes")
	keys := [][]byte{[]byte("k"), long, []byte("another key of more than fifteen")}
	table := NewTable(Config{Most: 1000})
	stop := make(chan struct{})
	time.AfterFunc(d, func() { close(stop) })
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			which := i % len(keys)
			ban := Ban{Key: keys[which], Until: 1000 + int64(which), Source: SourceManual}
			if got := table.Add(hash, &ban, 0); got != Added {
				t.Errorf("added: %d", got)
			}
			if !table.Remove(0, hash, keys[which], 0) {
				t.Error("the ban that was added is not there")
			}
		}
	})
	// More readers than processors: a reader that is suspended half-way finds another state when it goes on.
	var seen [3]atomic.Int64
	for range 2 + runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				select {
				case <-stop:
					return
				default:
				}
				for which, key := range keys {
					until, ok := table.Until(0, hash, key, 0)
					if ok && until != 1000+int64(which) {
						t.Errorf("key %d is banned until %d, as key %d is", which, until, until-1000)
					}
					if ok {
						seen[which].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seen %d, %d and %d times", seen[0].Load(), seen[1].Load(), seen[2].Load())
}

// TestConcurrentLaterEndWins adds a ban by hand, and begins one by a rule, at the same time, in all orders: the later end
// is in force.
func TestConcurrentLaterEndWins(t *testing.T) {
	rnd := random(t)
	rounds := 5000
	if longTests() {
		rounds = 1_000_000
	}
	table := NewTable(Config{})
	b := &Policy{Span: time.Second, For: time.Second, Remember: time.Millisecond}
	byHand := 0
	for round := range rounds {
		key, hash := fmt.Append(nil, round%10), uint64(round%10)
		now := int64(round) * int64(time.Hour)
		ends := make([]int64, 3)
		latest := now + int64(b.For)
		var wg sync.WaitGroup
		for i := range ends {
			ends[i] = now + 1 + rnd.Int64N(1.3e9)
			latest = max(latest, ends[i])
			wg.Go(func() {
				table.Add(hash, &Ban{Key: key, Until: ends[i], Source: SourceManual}, now)
			})
		}
		wg.Go(func() { table.Start(0, hash, key, b, now, 0) })
		wg.Wait()
		until, ok := table.Until(0, hash, key, now)
		if !ok || until != latest {
			t.Fatalf("round %d: banned until %d, want %d", round, until-now, latest-now)
		}
		if until != now+int64(b.For) {
			byHand++
		}
		if !table.Remove(0, hash, key, now) {
			t.Fatal("the ban cannot be unbanned")
		}
	}
	if byHand == 0 || byHand == rounds {
		t.Errorf("of %d rounds, the ban by hand won %d: the test has no teeth", rounds, byHand)
	}
}
