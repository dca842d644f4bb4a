package server

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A file that was changed between being read and being watched is seen to be other,
// and so is each change after it; one that stays as it is is not.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var seen atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		write("changed")
		go watch(ctx, path, sha256.Sum256([]byte("read")), time.Second, func() { seen.Add(1) })
		for i, step := range []struct {
			do   func()
			want int64
		}{
			{func() {}, 1},
			{func() {}, 1},
			{func() { write("changed") }, 1}, // to the same
			{func() { write("again") }, 2},
			{func() { os.Remove(path) }, 3},
			{func() {}, 3},
			{func() { write("again") }, 4},
		} {
			step.do()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := seen.Load(); got != step.want {
				t.Fatalf("after step %d: %d changes, want %d", i, got, step.want)
			}
		}
		stop()
		synctest.Wait()
	})
}
