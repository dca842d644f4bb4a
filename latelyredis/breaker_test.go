package latelyredis_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyredis"
)

// TestStopped stops the server while goroutines decide: calls return when their context ends,
// soon at once, and hardly any goroutine is left behind. The store decides again as soon as the
// server goes on.
func TestStopped(t *testing.T) {
	s := own(t)
	rules := anyRules(t)
	store := newStore(t, s.client(t), rules, prefixed())
	if r := take(context.Background(), store, rules, "k"); r.Err != nil {
		t.Fatal(r.Err)
	}
	eventually(t, "the store has read the list", store.Read)
	before := runtime.NumGoroutine()
	s.Process().Signal(syscall.SIGSTOP)
	defer s.Process().Signal(syscall.SIGCONT)
	atOnce, most := 0, 0
	for range 100 {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer cancel()
				r := take(ctx, store, rules, "k")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(r.Err, latelyredis.ErrAway):
					atOnce++
				case !errors.Is(r.Err, context.DeadlineExceeded):
					t.Errorf("%v, want that the deadline is exceeded, or ErrAway", r.Err)
				}
			})
		}
		all.Wait()
		most = max(most, runtime.NumGoroutine())
	}
	if atOnce < 3000 {
		t.Errorf("of 4000 calls %d failed at once, want all but the first", atOnce)
	}
	if most > before+200 {
		t.Errorf("%d goroutines, and %d while the server was stopped, want at most 200 more", before, most)
	}
	s.Process().Signal(syscall.SIGCONT)
	eventually(t, "the store decides again", func() bool {
		return take(context.Background(), store, rules, "another").Err == nil
	})
}
