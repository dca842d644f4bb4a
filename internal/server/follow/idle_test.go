package follow

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestIdleFiles follows many files: of those without a line for a minute, each poll reads a tenth. A line ends the rest.
// Fewer files never rest.
func TestIdleFiles(t *testing.T) {
	for _, n := range []int{fewFiles, 2 * fewFiles} {
		dir := t.TempDir()
		r := newReader(t, Config{}, dir)
		r.Follower.config.Logs[0].Path = dir
		path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("log%c.log", 'A'+rune(i))) }
		for i := range n {
			write(t, path(i), "first")
		}
		r.poll(context.Background(), r.now)
		r.names = nil
		resting := func() (all int) {
			for _, tail := range r.tails {
				if tail.rests {
					all++
				}
			}
			return all
		}
		if r.poll(context.Background(), r.now); resting() != 0 {
			t.Errorf("%d of %d files rest at once", resting(), n)
		}
		r.now = r.now.Add(2 * idleAfter)
		r.poll(context.Background(), r.now)
		if got := resting(); n == fewFiles && got != 0 || n > fewFiles && got < n-n/idleEvery-1 {
			t.Errorf("%d of %d files rest", got, n)
		}
		for i := range n {
			write(t, path(i), fmt.Sprint("second", i))
		}
		for i := range idleEvery {
			if got := len(r.names); n > fewFiles && (got < i*n/idleEvery-idleEvery || got > (i+1)*n/idleEvery+idleEvery) {
				t.Errorf("after %d polls %d lines of %d are read", i, got, n)
			}
			r.poll(context.Background(), r.now.Add(time.Duration(i)*poll))
		}
		if len(r.names) != n {
			t.Errorf("after %d polls %d lines of %d are read", idleEvery, len(r.names), n)
		}
		if r.poll(context.Background(), r.now.Add(time.Second)); resting() != 0 {
			t.Errorf("%d files rest that had a line", resting())
		}
	}
}
