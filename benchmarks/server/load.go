package main

import (
	"slices"
	"sync"
	"time"
)

// A load is how much is asked: for so long, by so many at once, for so many keys.
type load struct {
	d           time.Duration
	conns, keys int
}

// answers is what came of a load.
type answers struct {
	n        int // decisions
	took     time.Duration
	p50, p99 time.Duration // of what was asked at once
}

// An asker asks until end, and returns how long each time took, and how many decisions
// that were.
type asker func(end time.Time) (times []time.Duration, n int, err error)

// together has all ask at once.
func (l load) together(all []asker) (a answers, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var times []time.Duration
	began := time.Now()
	for _, ask := range all {
		wg.Go(func() {
			t, n, e := ask(began.Add(l.d))
			mu.Lock()
			defer mu.Unlock()
			times, a.n = append(times, t...), a.n+n
			if e != nil {
				err = e
			}
		})
	}
	wg.Wait()
	a.took = time.Since(began)
	if err != nil {
		return a, err
	}
	slices.Sort(times)
	a.p50, a.p99 = times[len(times)/2], times[len(times)*99/100]
	return a, nil
}
