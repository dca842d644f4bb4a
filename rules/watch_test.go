package rules_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// limitOf returns a rules file with one limit of n.
func limitOf(n int) string {
	return fmt.Sprintf("version: 1\nlimits:\n  - {name: one, key: client, limit: %d per 1m}\n", n)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// replace does what many editors do: it writes another file and renames it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	must.Do(t, os.Rename(path+".new", path))
}

// limits returns the N of the only limit of l.
func limits(l *ratelimit.Limiter) uint64 { return l.Set().Rules()[0].Limits[0].N }

// Open makes a limiter that enforces the file.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if _, err := rules.Open(path); err == nil || !strings.HasPrefix(err.Error(), "rules file: ") {
		t.Errorf("a missing file: %v", err)
	}
	write(t, path, "version: 2\n")
	if _, err := rules.Open(path); err == nil || !strings.Contains(err.Error(), path+":1:10: ") {
		t.Errorf("a file with a mistake: %v", err)
	}
	write(t, path, limitOf(2))
	limiter := must.Get(rules.Open(path))(t)
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	for i, want := range []bool{true, true, false} {
		if got := limiter.Take(&e).Allowed; got != want {
			t.Errorf("event %d: allowed = %v", i, got)
		}
	}
}

// Watch applies each good version of a file once, reports each bad one once, and keeps
// the counts. It finds the file by its path, also after it was replaced or missing.
func TestConcurrentWatch(t *testing.T) {
	dir := t.TempDir()
	path, second := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "second.yaml")
	write(t, path, limitOf(5))
	write(t, second, "version: 1\n")
	synctest.Test(t, func(t *testing.T) {
		limiter := must.Get(rules.Open(path, second))(t)
		var e match.Event
		e.SetString(match.Client, "192.0.2.1")
		limiter.Take(&e)
		var mu sync.Mutex
		var reports []string
		ctx, stop := context.WithCancel(t.Context())
		go rules.Watch(ctx, limiter, func(f *rules.File, err error) {
			if (f == nil) == (err == nil) {
				t.Errorf("a report has the file %v and the error %v", f, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				reports = append(reports, "error")
				return
			}
			reports = append(reports, fmt.Sprint(f.Limits.Rules()[0].Limits[0].N))
		}, path, second)
		want := []string{"5"} // the first report is about the current file
		for i, step := range []struct {
			do     func()
			report string
			n      uint64 // in force
		}{
			{func() {}, "", 5},
			{func() { write(t, path, limitOf(6)) }, "6", 6},
			{func() { write(t, path, limitOf(6)) }, "", 6},
			{func() { replace(t, path, limitOf(7)) }, "7", 7},
			{func() { write(t, path, "version: 1\nlimits: 3\n") }, "error", 7},
			{func() {}, "", 7},
			{func() { os.Remove(path) }, "error", 7},
			{func() {}, "", 7},
			{func() { replace(t, path, limitOf(7)) }, "7", 7},
			{func() { write(t, path, "") }, "error", 7},
			{func() { write(t, path, limitOf(8)) }, "8", 8},
			{func() { write(t, second, limitOf(9)) }, "error", 8}, // of the same name
			{func() { write(t, second, "version: 1\nallow: [192.0.2.9]\n") }, "8", 8},
			{func() { os.Remove(second) }, "error", 8},
			{func() { write(t, path, limitOf(9)) }, "", 8},
			{func() { write(t, second, "version: 1\n") }, "9", 9},
			{func() { write(t, path, limitOf(8)) }, "8", 8},
		} {
			step.do()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if step.report != "" {
				want = append(want, step.report)
			}
			mu.Lock()
			got := slices.Clone(reports)
			mu.Unlock()
			if !slices.Equal(got, want) {
				t.Fatalf("after step %d: reports %v, want %v", i, got, want)
			}
			if n := limits(limiter); n != step.n {
				t.Fatalf("after step %d: the limit is %d, want %d", i, n, step.n)
			}
		}
		if d := limiter.Take(&e); d.Remaining != 6 {
			t.Errorf("%d remain of 8 after two events, want 6: the event before the reloads counts", d.Remaining)
		}
		stop()
		synctest.Wait()
	})
}

// A file that is written in place is read when it is complete.
func TestConcurrentWatchWaitsForWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, limitOf(5))
	synctest.Test(t, func(t *testing.T) {
		f := must.Get(rules.Load(path))(t)
		ctx, stop := context.WithCancel(t.Context())
		var seen []uint64
		go func() {
			for next, err := range f.Changes(ctx, 100*time.Millisecond) {
				if err != nil {
					t.Error(err)
					continue
				}
				seen = append(seen, next.Limits.Rules()[0].Limits[0].N)
			}
		}()
		text := limitOf(123456)
		time.Sleep(5 * time.Millisecond) // so that no reading is at the time of a write
		for end := range len(text) {
			write(t, path, text[:end+1])
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(seen, []uint64{123456}) {
			t.Errorf("limits seen: %v, want the whole one alone", seen)
		}
		stop()
		synctest.Wait()
	})
}

// A File reports a change between loading and watching, and ends with ctx.
func TestChangesSinceLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, path, limitOf(1))
	f := must.Get(rules.Load(path))(t)
	write(t, path, limitOf(2))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	changes := 0
	for next, err := range f.Changes(ctx, time.Millisecond) {
		if err != nil || next.Limits.Rules()[0].Limits[0].N != 2 {
			t.Errorf("the change is %v, %v", next, err)
		}
		changes++
		stop()
	}
	if changes != 1 {
		t.Errorf("%d changes, want 1", changes)
	}
}
