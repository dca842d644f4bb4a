package respapi

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestOverload sends from as many connections as keep the server busy, then from five times as many, then as before: each
// is answered, and the decisions are those that clients received. Its long form takes a minute for the fivefold.
// benchmarks/server does so between processes, and measures answers a second.
//
//	LATELY_LONG=1 go test ./internal/server/respapi -run Overload -v
func TestOverload(t *testing.T) {
	conns, d := 16, 300*time.Millisecond
	if long() {
		conns, d = 64, time.Minute
	}
	s := start(t, Config{}, false)
	var told uint64
	for _, x := range []struct {
		conns int
		d     time.Duration
	}{{conns, d / 6}, {5 * conns, d}, {conns, d / 6}} {
		answers, late := s.askFor(x.d, x.conns)
		var sum uint64
		for _, n := range answers {
			sum += n
		}
		told += sum
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		t.Logf("%d connections for %v: %.0f a second, p50 %v, p99 %v; the least was answered %d, the most %d; the heap has %d KiB", x.conns, x.d,
			float64(sum)/x.d.Seconds(), late[len(late)/2], late[len(late)*99/100], slices.Min(answers), slices.Max(answers), m.HeapAlloc>>10)
		until(t, "all have gone", func() bool { return s.Open() == 0 })
	}
	if n := s.Engine.Totals().Allowed; n != told {
		t.Errorf("%d were decided, %d answered", n, told)
	}
}

// askFor sends from n connections until each was answered twice, for up to a minute. It returns how often each was
// answered, and how long each answer took for a few of them.
func (r *running) askFor(d time.Duration, conns int) (answers []uint64, late []time.Duration) {
	answers = make([]uint64, conns)
	took := make([][]time.Duration, conns)
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range conns {
		c := r.dial()
		c.conn.SetDeadline(end.Add(time.Minute)) // one whose turn does not come has failed
		wg.Go(func() {
			defer c.conn.Close()
			ask := encode("TAKE per-client a")
			for at := time.Now(); at.Before(end) || answers[i] < 2; answers[i]++ {
				if _, err := c.conn.Write(ask); err != nil {
					r.t.Error(err)
					return
				}
				v, err := c.r.Next()
				if err != nil || len(v.Elems) == 0 || v.Elems[0].Int() != 1 {
					r.t.Errorf("answered %s, %v", show(v), err)
					return
				}
				now := time.Now()
				if answers[i]%16 == 0 {
					took[i] = append(took[i], now.Sub(at))
				}
				at = now
			}
		})
	}
	wg.Wait()
	late = slices.Concat(took...)
	slices.Sort(late)
	return answers, late
}
