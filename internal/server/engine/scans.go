package engine

import (
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
)

// scans limits requests that read all bans or all keys of a table: one runs at a time, a few
// wait, and others are refused. After each there is a pause of the same length, so that scans
// take at most half of one core.
type scans struct {
	slot    chan struct{} // has one element, except during a scan and its pause
	waiting atomic.Int64
	began   time.Time // of the scan that runs
}

const (
	maxScansWaiting = 32
	maxScanWait     = 2 * time.Second

	// freeScan is how long a scan may take without a pause after it.
	freeScan = time.Millisecond
)

func (s *scans) init() {
	s.slot = make(chan struct{}, 1)
	s.slot <- struct{}{}
}

// begin waits until a scan may run. Without an error, the caller must call end.
func (s *scans) begin() error {
	if s.waiting.Add(1) > maxScansWaiting {
		s.waiting.Add(-1)
		return errScans
	}
	defer s.waiting.Add(-1)
	select {
	case <-s.slot:
	default:
		wait := time.NewTimer(maxScanWait)
		defer wait.Stop()
		select {
		case <-s.slot:
		case <-wait.C:
			return errScans
		}
	}
	s.began = time.Now()
	return nil
}

var errScans = apierror.New(api.Overload, "too many clients read lists of bans or keys at once; try again later")

// end ends a scan.
func (s *scans) end() {
	took := time.Since(s.began)
	if took < freeScan {
		s.slot <- struct{}{}
		return
	}
	time.AfterFunc(took, func() { s.slot <- struct{}{} })
}
