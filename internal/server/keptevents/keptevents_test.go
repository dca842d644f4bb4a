package keptevents_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/match"
)

// TestConcurrentEventsAreTheLast keeps the newest events within its bytes, all of them since the reported time, also while
// others are added and read.
func TestConcurrentEventsAreTheLast(t *testing.T) {
	const sessions, each, budget = 4, 6000, 1 << 20
	q := keptevents.New(budget)
	began := time.Unix(1_700_000_000, 0)
	at := func(i int64) time.Time { return began.Add(time.Duration(i) * time.Millisecond) }
	var writers sync.WaitGroup
	var clock atomic.Int64 // in milliseconds, of all writers
	for n := range sessions {
		writers.Go(func() {
			var ev match.Event
			for range each {
				i := clock.Add(1)
				ev.Reset()
				ev.SetString(match.Path, fmt.Sprintf("/%d%s", i, strings.Repeat("x", 100)))
				q.Add(uint64(n), at(i), &ev, 1)
			}
		})
	}
	for range 20 {
		kept, n := q.Events(), 0 // the race detector is the test
		for range kept.All() {
			n++
		}
		kept.Close()
		if n > budget/100 {
			t.Errorf("%d events in %d bytes", n, budget)
		}
	}
	writers.Wait()
	kept := q.Events()
	defer kept.Close()
	got := make(map[string]bool)
	for ev := range kept.All() {
		if !ev.Time.After(kept.Since) {
			t.Errorf("an event of %v; they are whole since %v", ev.Time, kept.Since)
		}
		number, _, _ := bytes.Cut(ev.Get(match.Path), []byte("x"))
		got[string(number)] = true
	}
	want := 0
	for i := int64(1); i <= sessions*each; i++ {
		if at(i).After(kept.Since) {
			want++
			if !got[fmt.Sprintf("/%d", i)] {
				t.Fatalf("event %d is missing; they are whole since %v", i, kept.Since)
			}
		}
	}
	if len(got) != want || want < sessions || want == sessions*each {
		t.Errorf("%d events, want %d of %d", len(got), want, sessions*each)
	}
}
