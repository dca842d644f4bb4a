package latelyredis_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/store/storetest"
	"github.com/lately-go/lately/ratelimit"
)

// TestConforms holds the store to what every store promises, on a redis-server whose
// scripts take a time that the test moves.
func TestConforms(t *testing.T) {
	t.Parallel()
	conforms(t, redis(t).client(t), 30)
}

// conforms runs the cases with a number of random requests, five times as many in the long form and a third in the short
// form. The memory store has 150.
func conforms(t *testing.T, client rueidis.Client, steps int) {
	t.Helper()
	if longForm() {
		steps *= 5
	} else if testing.Short() {
		steps /= 3
	}
	var now atomic.Int64
	open := func(t testing.TB, set *ratelimit.Set) storetest.Store {
		s := storeAt(t, client, set, prefixed(), &now)
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
