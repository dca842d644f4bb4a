//go:build linux

package storm

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// TestStorm runs seeds against the program lately in the folder LATELY_STORM.
//
//	make storm              # fixed seeds, for a minute
//
//	make storm SEEDS=1000   # fresh seeds
//
//	make storm SEED=7       # one seed
//
// STORM_FIRST is the first seed, STORM_SEEDS the number of them, STORM_AT_ONCE how many run at once, and STORM_FOR for how
// long seeds begin: a busy machine runs fewer of them. To see what storms find in another version of the program, put it
// into the folder.
func TestStorm(t *testing.T) {
	folder := os.Getenv("LATELY_STORM")
	if folder == "" {
		t.Skip("SKIP: storms take a minute or more; run make storm")
	}
	program := must.Get(filepath.Abs(filepath.Join(folder, "lately")))(t)
	first, n := number(t, "STORM_FIRST", 1), number(t, "STORM_SEEDS", 60)
	if os.Getenv("STORM_FRESH") != "" {
		first = uint64(time.Now().UnixMicro())
	}
	limit, err := time.ParseDuration(os.Getenv("STORM_FOR"))
	if err != nil {
		limit = 24 * time.Hour
	}
	begun := time.Now()
	var ran, failed atomic.Uint64
	each(t, first, n, func(seed uint64) bool {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			c, begun := Draw(seed), time.Now()
			if findings := Run(t, c, program); len(findings) > 0 {
				t.Error(Report(c, findings))
			}
			t.Logf("%v: %v", c, time.Since(begun).Round(time.Millisecond))
		})
		if ran.Add(1); !ok {
			failed.Add(1)
		}
		return time.Since(begun) < limit
	})
	t.Logf("%d of %d seeds from %d failed, in %v", failed.Load(), ran.Load(), first, time.Since(begun).Round(time.Second))
}

// each calls do with n seeds, several at a time, since seeds wait most of the time. After do has returned false no
// seed begins.
func each(t *testing.T, first, n uint64, do func(seed uint64) bool) {
	var next atomic.Uint64
	var ended atomic.Bool
	var all sync.WaitGroup
	for range number(t, "STORM_AT_ONCE", uint64(2*runtime.NumCPU())) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < n && !ended.Load(); i = next.Add(1) - 1 {
				if !do(first + i) {
					ended.Store(true)
				}
			}
		})
	}
	all.Wait()
}

// number returns the number in a variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
