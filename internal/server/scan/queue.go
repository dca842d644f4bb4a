// Package scan limits requests that read all bans or all keys of a table.
package scan

import (
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
)

// A Queue runs one scan at a time, has a few wait, and refuses others. After each there is a pause of the same length,
// so that scans take at most half of one core. Make one with [New].
type Queue struct {
	slot    chan struct{} // has one element, except during a scan and its pause
	waiting atomic.Int64
	began   time.Time // of the scan that runs
}

const (
	maxWaiting = 32
	maxWait    = 2 * time.Second

	// free is how long a scan may take without a pause after it.
	free = time.Millisecond
)

// New returns a Queue without scans.
func New() *Queue {
	q := &Queue{slot: make(chan struct{}, 1)}
	q.slot <- struct{}{}
	return q
}

// Begin waits until a scan may run. Without an error, the caller must call End.
func (q *Queue) Begin() error {
	if q.waiting.Add(1) > maxWaiting {
		q.waiting.Add(-1)
		return errBusy
	}
	defer q.waiting.Add(-1)
	select {
	case <-q.slot:
	default:
		wait := time.NewTimer(maxWait)
		defer wait.Stop()
		select {
		case <-q.slot:
		case <-wait.C:
			return errBusy
		}
	}
	q.began = time.Now()
	return nil
}

var errBusy = apierror.New(api.Overload, "too many clients read lists of bans or keys at once; try again later")

// End ends a scan.
func (q *Queue) End() {
	took := time.Since(q.began)
	if took < free {
		q.slot <- struct{}{}
		return
	}
	time.AfterFunc(took, func() { q.slot <- struct{}{} })
}
