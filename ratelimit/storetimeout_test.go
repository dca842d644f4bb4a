package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// hanging is a store that answers no decision.
type hanging struct{ ratelimit.Store }

func (hanging) DecideKnown(*ratelimit.Request) bool { return false }

func (hanging) Decide(ctx context.Context, batch []*ratelimit.Request) {
	<-ctx.Done()
	for _, r := range batch {
		r.Err = ctx.Err()
	}
}

func (hanging) Ban(ctx context.Context, _ ratelimit.BanRecord) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Unban(ctx context.Context, _ string, _ []byte) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// TestStoreBanTimeout bans and unbans by a store that does not answer: that may take longer than a decision.
func TestStoreBanTimeout(t *testing.T) {
	set := mustSet(t, limitRule(t, "r", per(1, time.Minute)))
	for timeout, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			l, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: hanging{}, StoreTimeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err = l.Bans().Add(ratelimit.BanRecord{Rule: "r", Key: []string{"k"}, Until: start.Add(time.Hour)})
			if waited := time.Since(start); waited != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("StoreTimeout %v: Add returns %v after %v, want %v", timeout, err, waited, want)
			}
			start = time.Now()
			_, err = l.Bans().Remove("r", "k")
			if waited := time.Since(start); waited != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("StoreTimeout %v: Remove returns %v after %v, want %v", timeout, err, waited, want)
			}
		})
	}
}

// TestStoreTimeout waits for a store that does not answer, for the time in Config.
func TestStoreTimeout(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "r", Key: match.MustKey("path"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}, OnStoreFailure: ratelimit.FailClosed,
	}))(t)
	var e match.Event
	e.SetString(match.Path, "/")
	for timeout, want := range map[time.Duration]time.Duration{0: 20 * time.Millisecond, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Store: hanging{}, StoreTimeout: timeout}))(t)
			start := time.Now()
			d := l.Take(&e)
			if waited := time.Since(start); waited != want || d.Allowed || !errors.Is(d.Err, context.DeadlineExceeded) {
				t.Errorf("StoreTimeout %v: after %v %+v, want a refusal after %v", timeout, waited, d, want)
			}
		})
	}
	if _, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: hanging{}, StoreTimeout: -1}); err == nil {
		t.Error("a negative StoreTimeout was accepted")
	}
}
