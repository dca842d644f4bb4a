package scan

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// TestConcurrentScans has many clients that scan all the time: one at a time does, for half of the
// time, and those beyond the queue are refused at once.
func TestConcurrentScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		const clients, long = 100, 100 * time.Millisecond
		var running, done, refused atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for range clients {
			wg.Go(func() {
				for time.Since(start) < 10*time.Second {
					asked := time.Now()
					if err := s.Begin(); err != nil {
						if err != errBusy || time.Since(asked) > maxWait {
							t.Errorf("%v after %v", err, time.Since(asked))
						}
						refused.Add(1)
						time.Sleep(long)
						continue
					}
					if n := running.Add(1); n > 1 {
						t.Errorf("%d scans run", n)
					}
					time.Sleep(long)
					running.Add(-1)
					done.Add(1)
					s.End()
				}
			})
		}
		wg.Wait()
		if n := done.Load(); n < 45 || n > 65 {
			t.Errorf("%d scans of %v within 10 s and what waited then; want half of the time", n, long)
		}
		if refused.Load() == 0 {
			t.Error("nobody was refused")
		}
	})
}

// TestShortScans run one after the other without a pause.
func TestShortScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		start := time.Now()
		for range 1000 {
			must.Do(t, s.Begin())
			s.End()
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("they took %v", d)
		}
	})
}
