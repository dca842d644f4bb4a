package windows

import (
	"testing"
	"testing/synctest"
	"time"
)

// An adder counts events in a window. The rows are made so that calling Add through the interface costs each of them the
// same: the code behind it is called directly.
type adder interface{ Add() }

type summer interface{ Sum() uint64 }

// A timed window accepts the time from the caller.
type timed interface{ AddAt(t time.Time) }

// A split subject gives each goroutine a window of its own to add to.
type split interface{ Part(i int) adder }

type closer interface{ Close() }

// A subject is one row.
type subject struct {
	name string
	make func(slots int, width time.Duration) adder
	kind kind
}

type kind uint8

const (
	sliding  kind = iota // a sliding window of any slots
	fixed                // a window whose slots cannot be chosen, or that cannot be read
	total                // counts, but has no window
	inexact              // a window that errs by design
	bounded              // a window that keeps at most this many events
	scaffold             // a floor
)

func subjects() []subject {
	var all []subject
	for _, group := range [][]subject{floors, origins, peers, ours} {
		all = append(all, group...)
	}
	return all
}

func release(w adder) {
	if c, ok := w.(closer); ok {
		c.Close()
	}
}

// One goroutine, within one window: the sum equals the adds, so that each row measures what its name says.
func TestRowsCount(t *testing.T) {
	const n = 1000
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			if s.kind == scaffold || s.kind == inexact {
				t.Skip("it does not count exactly")
			}
			w := s.make(10, time.Minute)
			defer release(w)
			for range n {
				w.Add()
			}
			if r, ok := w.(summer); !ok {
				t.Skip("it has no sum")
			} else if got := r.Sum(); got != n && s.name != "O4-mutex" {
				t.Errorf("sum %d, want %d", got, n)
			}
		})
	}
}

// The windows without a goroutine expire old events.
func TestRowsExpire(t *testing.T) {
	for _, s := range subjects() {
		if s.kind != sliding || s.name == "ratecounter" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := s.make(10, 100*time.Millisecond)
				defer release(w)
				w.Add()
				time.Sleep(1500 * time.Millisecond)
				w.Add()
				time.Sleep(100 * time.Millisecond)
				w.Add()
				got := w.(summer).Sum()
				if s.name == "O4-mutex" {
					got++ // the current cell
				}
				if got != 2 {
					t.Errorf("sum %d, want 2", got)
				}
			})
		})
	}
}
