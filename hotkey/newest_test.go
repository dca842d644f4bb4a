package hotkey

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/match"
)

// TestConcurrentNewestTime has keys without a record begin at different times at once: the
// newest time of the table is never earlier than one of those that have begun.
func TestConcurrentNewestTime(t *testing.T) {
	const goroutines, begun = 4, 500_000
	d, err := New(Rule{Name: "r", Key: match.MustKey("path"), Threshold: 3, Span: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	table := d.tables[0]
	var clock atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range begun {
				now := clock.Add(1)
				table.begin(keytable.Record{}, keytable.Found, 0, "", false, now)
				if newest := table.newest.Load(); newest < now {
					t.Errorf("%d is the newest time after a key has begun at %d", newest, now)
					return
				}
			}
		})
	}
	all.Wait()
}
