package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// TestStoreTimeout waits for a store that does not answer: as long as the Config says.
func TestStoreTimeout(t *testing.T) {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "r", Key: match.MustKey("path"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}, OnStoreFailure: ratelimit.FailClosed,
	})
	if err != nil {
		t.Fatal(err)
	}
	var e match.Event
	e.SetString(match.Path, "/")
	for timeout, want := range map[time.Duration]time.Duration{0: 20 * time.Millisecond, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: hanging{}, StoreTimeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
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
