package follow

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/journaltest"
	"github.com/lately-go/lately/internal/test/must"
)

// TestLost loses the position in one of two logs: its earlier lines are left out, also if the next process is killed before
// it has read them. All lines of the other log, and of a log that was found later, are passed on.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log"), filepath.Join(dir, "c.log")
	write(t, a, "100,a1", "200,a2")
	write(t, b, "100,b1")
	r := newReader(t, Config{}, a, b)
	r.want("a1", "b1", "a2")
	write(t, a, "300,a3", "301,a4")
	write(t, b, "150,b2")
	saved := r.save()
	next := newReader(t, Config{}, a, b, filepath.Join(dir, "[c].log"))
	next.resume(slices.Delete(slices.Clone(saved), 1, 2))
	next.Lost(time.Unix(300, 0))
	write(t, c, "250,c1", "350,c2")
	for range 3 { // killed before it reads
		again := newReader(t, Config{}, a, b, filepath.Join(dir, "[c].log"))
		records := next.save()
		slices.Reverse(records)
		again.resume(records)
		next = again
	}
	next.want("b2", "a3", "a4", "c2")
	write(t, a, "200,late")
	next.want()
	last := newReader(t, Config{}, a, b)
	last.resume(next.save())
	write(t, a, "400,a5")
	write(t, b, "160,b3")
	last.want("b3", "a5")
}

// TestLostJournal loses the place in the journal, also if the next process is killed when it has begun to read.
func TestLostJournal(t *testing.T) {
	j := journaltest.New(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	j.Add(at.Add(-time.Second), "sshd", failed("a"))
	j.Add(at, "sshd", failed("b"))
	r := newJournalReader(t, "journal")
	r.Lost(at)
	r = r.next("journal")
	r.refresh(r.now)
	r.next("journal").eventually("b")
}

// TestLostFeed loses the state of one of two feeds: its earlier events are left out, also after another restart, as for a
// new feed.
func TestLostFeed(t *testing.T) {
	for _, restarts := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) {
			f := newWaitingFeed(t)
			f.feeds.Lost(time.Unix(5, 0))
			for range restarts {
				f.restart()
			}
			f.send(-1, 4, 5, 6)
			f.want(5, 6)
			f.restart()
			f.send(-1, 4, 7)
			f.want(7)
		})
	}
	f := newWaitingFeed(t)
	f.send(-1, 1)
	f.want(1)
	f.feeds.Lost(time.Unix(5, 0)) // it has its state
	f.restart()
	f.send(-1, 4, 5)
	f.want(4, 5)
}

// restart goes on in another process.
func (f *waitingFeed) restart() {
	f.t.Helper()
	next := NewFeeds(func() {})
	must.Do(f.t, f.feeds.Save(func(records [][]byte) error {
		for _, record := range records {
			if err := next.Restore(record, f.now); err != nil {
				return err
			}
		}
		return nil
	}))
	f.feeds = next
	f.open()
}
