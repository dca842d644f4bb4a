package latelyredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestOnBanCallsStore begins a ban on one store. Another store receives it, and its OnBan uses the store: no lock is held.
// A store that calls OnBan while it reads the list is found out.
func TestOnBanCallsStore(t *testing.T) {
	for _, x := range []struct {
		name   string
		sync   func(*latelyredis.Store, context.Context) error
		locked bool
	}{
		{"Store", (*latelyredis.Store).Sync, false},
		{"Control", (*latelyredis.Store).SyncLocked, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			rules, client, config := set(t, banning("flood", match.MustKey("path"), 0)), redis(t).client(t), prefixed()
			now := clockAt(time.Now())
			first := knowing(t, client, rules, config, now, now)
			var second *latelyredis.Store
			told, locked := 0, false
			config.OnBan = func(b ratelimit.BanRecord) {
				told++
				if locked = second.Locked(); locked {
					return
				}
				if err := second.Sync(t.Context()); err != nil {
					t.Error(err)
				}
				if got := known(t, second); len(got) != 1 || got[0].Key[0] != b.Key[0] {
					t.Errorf("OnBan receives %+v, and %+v are listed", b, got)
				}
			}
			second = knowing(t, client, rules, config, now, now)
			if err := second.Sync(t.Context()); err != nil { // an earlier ban is not reported
				t.Fatal(err)
			}
			ask(t, first, rules, about(0, "flooder"))
			must.Do(t, x.sync(second, t.Context()))
			if told != 1 || locked != x.locked {
				t.Errorf("received %d bans, want 1; locked %v, want %v", told, locked, x.locked)
			}
		})
	}
}
