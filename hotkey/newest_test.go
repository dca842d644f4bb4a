package hotkey

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestConcurrentNewestTime has two keys without a record begin at different times at once, again
// and again: the newest time of the table is then the later one.
func TestConcurrentNewestTime(t *testing.T) {
	const keys = 2
	rounds := int64(1_000_000)
	if testing.Short() {
		rounds = 200_000
	}
	d := must.Get(New(Rule{Name: "r", Key: match.MustKey("path"), Threshold: 3, Span: time.Second}))(t)
	table := d.tables[0]
	var begun atomic.Int64
	var all sync.WaitGroup
	for key := range int64(keys) {
		all.Go(func() {
			for round := range rounds {
				reaches(&begun, round*2*keys) // both have looked
				table.begin(keytable.Record{}, keytable.Found, 0, "", false, round*keys+key)
				begun.Add(1)
				reaches(&begun, round*2*keys+keys)
				if newest, want := table.newest.Load(), round*keys+keys-1; newest != want && !t.Failed() {
					t.Errorf("%d is the newest time after a key has begun at %d", newest, want)
				}
				begun.Add(1)
			}
		})
	}
	all.Wait()
}

// reaches waits until n is so large. It spins first: goroutines that yield would take turns on one processor, and begin nothing
// at the same time.
func reaches(n *atomic.Int64, least int64) {
	for spins := 0; n.Load() < least; spins++ {
		if spins > 2000 {
			runtime.Gosched()
		}
	}
}
