package ratelimit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Package latelyredis tests CopyTo with a store.
func TestCopyToMemory(t *testing.T) {
	limiter := func() *ratelimit.Limiter {
		l, err := ratelimit.New(ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	n := 0
	for _, err := range limiter().CopyTo(context.Background(), limiter(), "id") {
		if n++; err == nil || !strings.Contains(err.Error(), "must be from memory to a shared store") {
			t.Errorf("%v, want an error that says what it must be", err)
		}
	}
	if n != 1 {
		t.Errorf("%d are yielded, want one", n)
	}
}
