package latelyredis_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/store/storetest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

// TestConforms holds the store to what every store promises, on a redis-server whose
// scripts take a time that the test moves.
func TestConforms(t *testing.T) {
	t.Parallel()
	steps := 30 // each is a request; the memory store has 150 of them
	if longForm() {
		steps = 150
	}
	conforms(t, redis(t).client(t), steps)
}

func conforms(t *testing.T, client rueidis.Client, steps int) {
	t.Helper()
	var now atomic.Int64
	open := func(t testing.TB, set *ratelimit.Set) storetest.Store {
		s, err := latelyredis.NewAt(client, set, prefixed(), &now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(t.Context()); err != nil { // once: its own bans must be in the copy without another
			t.Fatal(err)
		}
		return s
	}
	storetest.Run(t, open, storetest.Config{
		SetClock:    func(nanos int64) { now.Store(nanos / 1000) },
		Resolution:  time.Microsecond,
		Compensates: true,
		Leaves:      true,
		Steps:       steps,
	})
}
