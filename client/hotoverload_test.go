package client

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// Three clients report three times as many records as pass to the server, for a minute. No client is disconnected, the
// memory does not grow, dropped records are counted, and the most used keys stay hot. TestReportOverload in respapi tests
// the server alone.
//
//	LATELY_LONG=1 go test ./client -run TestHotOverload -v
func TestHotOverload(t *testing.T) {
	if os.Getenv("LATELY_LONG") == "" {
		t.Skip("SKIP: LATELY_LONG is not set")
	}
	const (
		clients   = 3
		pace      = 400 << 10 // bytes a second that pass from each
		hotKeys   = 50
		perSecond = 60_000 // records of keys that come once, per client
		seconds   = 60
	)
	s := startServer(t, listen.Config{})
	var fleets []*Fleet
	var running sync.WaitGroup
	stop := make(chan struct{})
	for c := range clients {
		f, d := hotFleet(t, FleetConfig{Nodes: []string{s.addr}, Timeout: 10 * time.Second})
		fleets = append(fleets, f)
		running.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				for range perSecond / 100 {
					under(d, "product").Add(fmt.Sprintf("/once/%d/%d", c, n))
					n++
				}
				for k := range hotKeys {
					under(d, "product").Add(fmt.Sprint("/hot/", k))
				}
			}
		})
	}
	before := s.accepted()
	s.slow(pace)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, most uint64
	for second := range seconds {
		time.Sleep(time.Second)
		listed := 0
		keys, err := s.Hot().List("product")
		for _, k := range keys {
			if strings.HasPrefix(k.Values()[0], "/hot/") {
				listed++
			}
		}
		if err != nil || second > seconds/3 && listed != hotKeys {
			t.Errorf("after %d s: %d keys are hot, %v; want %d", second, listed, err, hotKeys)
		}
		switch now := heap(); {
		case second <= seconds/3:
			early = max(early, now)
		default:
			most = max(most, now)
		}
	}
	close(stop)
	running.Wait()
	var total HotStats
	for _, f := range fleets {
		st := f.HotStats()
		if st.Added != st.Sent+st.Pending+st.Dropped+st.Unanswered || st.Unanswered > 0 || !f.isUp(s.addr) {
			t.Errorf("%+v do not add up, or a node was lost", st)
		}
		total.Added, total.Sent, total.Dropped, total.Pending = total.Added+st.Added, total.Sent+st.Sent, total.Dropped+st.Dropped, total.Pending+st.Pending
	}
	stats := must.Get(s.Hot().Stats("product"))(t)
	t.Logf("%d clients for %d s: %+v; the server has counted %d records; heap at most %d MiB in the first third, %d MiB later; %d connections",
		clients, seconds, total, stats.Rules[0].Records, early>>20, most>>20, s.accepted())
	hot := total.Added * hotKeys / (hotKeys + perSecond/100) // events of the keys that are kept
	if total.Added-hot < 3*(total.Sent-hot) {
		t.Errorf("%d of %d were sent, %d of them of hot keys: the others are less than three times as many", total.Sent, total.Added, hot)
	}
	if most > early*11/10 {
		t.Errorf("the heap has grown from %d to %d bytes", early, most)
	}
	if n := s.accepted(); n != before {
		t.Errorf("%d connections, then %d: somebody was disconnected", before, n)
	}
}
