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
	conforms(t, redis(t).client(t))
}

func conforms(t *testing.T, client rueidis.Client) {
	t.Helper()
	var now atomic.Int64
	now.Store(time.Now().UnixMicro())
	nanos := int64(0)
	open := func(t testing.TB, set *ratelimit.Set) storetest.Store {
		s, err := latelyredis.NewAt(client, set, prefixed(), &now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	storetest.Run(t, open, storetest.Config{
		Pass: func(d time.Duration) {
			nanos += int64(d)
			now.Add(nanos / 1000)
			nanos %= 1000
		},
		Now:         func() int64 { return now.Load() * 1000 },
		Resolution:  time.Microsecond,
		Compensates: true,
		Leaves:      true,
		Rounds:      1,
	})
}
