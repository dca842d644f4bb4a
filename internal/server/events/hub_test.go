package events

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
)

func numberedBan(i int) api.Event {
	now := time.Now()
	return api.Event{Type: api.BanStarted, Time: now, Ban: &api.Ban{
		Rule: "r", Key: api.KeyOf(fmt.Sprint(i)), Since: now, Until: now.Add(time.Hour), Source: "rule",
	}}
}

// TestPublishDoesNotEncode has subscribers that do not read: an event costs one
// allocation, however many there are.
func TestPublishDoesNotEncode(t *testing.T) {
	for _, subscribers := range []int{1, 4096} {
		h := New()
		for range subscribers {
			h.Subscribe()
		}
		ev := numberedBan(1)
		if n := testing.AllocsPerRun(100, func() { h.Publish(ev) }); n != 1 {
			t.Errorf("with %d subscribers: %v allocations for an event; want 1", subscribers, n)
		}
	}
}

// TestSubscribersConcurrently publishes from several goroutines: each subscriber that
// reads gets every event once, those of one publisher in order.
func TestSubscribersConcurrently(t *testing.T) {
	const publishers, each, readers = 4, 5000, 8
	h := New()
	stop := make(chan struct{})
	var waker, reading sync.WaitGroup
	waker.Go(func() { h.Run(stop) })
	var at [readers]chan int // how many events a reader has read
	for r := range readers {
		sub := h.Subscribe()
		at[r] = make(chan int, publishers*each)
		reading.Go(func() {
			defer sub.Close()
			var next [publishers]int
			for n := 0; n < publishers*each; {
				ev, ok := sub.Next()
				if !ok {
					select {
					case <-sub.Wait():
					case <-sub.Done():
						t.Errorf("reader %d: the subscription has ended after %d events", r, n)
						close(at[r])
						return
					}
					continue
				}
				var p, i int
				fmt.Sscanf(ev.Ban.Text[0], "%d/%d", &p, &i)
				if i != next[p] || len(ev.JSON) == 0 {
					t.Errorf("reader %d: event %d of publisher %d; want %d", r, i, p, next[p])
				}
				next[p]++
				n++
				at[r] <- n
			}
		})
	}
	var publishing sync.WaitGroup
	var turn sync.Mutex
	published := 0
	var read [readers]int
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				turn.Lock() // no subscriber may fall behind by more than the ring
				for r := range readers {
					for ok := true; ok && published-read[r] > ringSize/2; read[r], ok = <-at[r] {
					}
				}
				published++
				turn.Unlock()
				ev := numberedBan(0)
				ev.Ban.Text[0] = fmt.Sprintf("%d/%d", p, i)
				h.Publish(ev)
			}
		})
	}
	publishing.Wait()
	reading.Wait()
	close(stop)
	waker.Wait()
	if n := h.n.Load(); n != 0 || h.cut.Load() != 0 {
		t.Errorf("%d subscribers are left, %d were cut", n, h.cut.Load())
	}
}

// TestHubClose ends all subscriptions.
func TestHubClose(t *testing.T) {
	h := New()
	before := h.Subscribe()
	h.Close()
	after := h.Subscribe()
	for _, s := range []*Subscription{before, after} {
		<-s.Done()
		if _, ok := s.Next(); ok || s.Slow() {
			t.Errorf("the subscription goes on, or is slow: %t", s.Slow())
		}
		s.Close()
	}
	if n := h.n.Load(); n != 0 {
		t.Errorf("%d subscribers", n)
	}
}

// BenchmarkPublish publishes to subscribers that do not read.
func BenchmarkPublish(b *testing.B) {
	for _, subscribers := range []int{0, 1, 4096} {
		b.Run(fmt.Sprint("subscribers=", subscribers), func(b *testing.B) {
			h := New()
			for range subscribers {
				h.Subscribe()
			}
			ev := numberedBan(1)
			b.ReportAllocs()
			for b.Loop() {
				h.Publish(ev)
			}
		})
	}
}
