package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

func ExamplePerKey() {
	logins := ratelimit.PerKey(2, time.Minute)
	for range 3 {
		fmt.Println(logins.Take("ada").Allowed)
	}
	fmt.Println(logins.Take("grace").Allowed)
	// Output:
	// true
	// true
	// false
	// true
}

func TestPerKeyRejectsLimits(t *testing.T) {
	for name, per := range map[string]func(){
		"no span":   func() { ratelimit.PerKey(1, 0) },
		"long span": func() { ratelimit.PerKey(1, limit.MaxSpan+time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "ratelimit: ") || strings.Count(text, "ratelimit: ") > 1 || !strings.Contains(text, "must be") {
					t.Errorf("panicked with %q, want a sentence with what the span must be", text)
				}
			}()
			per()
		})
	}
}

// Wait under one rule returns when the oldest event has left the window, and at once with
// an error if the context ends before.
func TestRuleLimiterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := ratelimit.PerKey(2, time.Minute)
		began := time.Now()
		for i := range 3 {
			r, err := calls.Wait(t.Context(), 1, "k")
			if err != nil || !r.Decision.Allowed {
				t.Fatalf("wait %d: %+v, %v", i, r.Decision, err)
			}
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("three of two a minute took %v, want 1m", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := calls.Wait(ctx, 2, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that the context does not last for: %v, want that its deadline is exceeded", err)
		}
		if _, err := calls.Wait(t.Context(), 3, "k"); !errors.Is(err, ratelimit.ErrCost) {
			t.Errorf("a cost above the limit: %v, want ErrCost", err)
		}
	})
}
