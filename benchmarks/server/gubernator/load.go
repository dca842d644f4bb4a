package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mailgun/gubernator/v2"
)

// A load asks a node for decisions, each caller for one call at a time.
type load struct {
	addr                        string
	d                           time.Duration
	callers, conns, keys, items int
}

// run prints what came of it in one line: how many decisions, in how many nanoseconds,
// and the nanoseconds of half of the calls and of 99 % of them at most.
func (l load) run() error {
	clients := make([]gubernator.V1Client, l.conns)
	for i := range clients {
		c, err := gubernator.DialV1Server(l.addr, nil)
		if err != nil {
			return err
		}
		if _, err := c.HealthCheck(context.Background(), &gubernator.HealthCheckReq{}); err != nil {
			return err // and so all are connected before the time begins
		}
		clients[i] = c
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	began := time.Now()
	for i := range l.callers {
		wg.Go(func() {
			times, err := l.ask(clients[i%len(clients)], i, began.Add(l.d))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if failed != nil {
		return failed
	}
	slices.Sort(all)
	fmt.Println(len(all)*l.items, took.Nanoseconds(), all[len(all)/2].Nanoseconds(), all[len(all)*99/100].Nanoseconds())
	return nil
}

// ask calls until end, and returns how long each call took.
func (l load) ask(c gubernator.V1Client, i int, end time.Time) (times []time.Duration, err error) {
	at := time.Now()
	for k := i; at.Before(end); {
		req := &gubernator.GetRateLimitsReq{Requests: make([]*gubernator.RateLimitReq, l.items)}
		for j := range req.Requests {
			req.Requests[j] = &gubernator.RateLimitReq{
				Name: "per-client", UniqueKey: fmt.Sprintf("192.0.2.%d", k%l.keys), Hits: 1, Limit: 1_000_000_000, Duration: 60 * gubernator.Minute,
			}
			k += l.callers
		}
		resp, err := c.GetRateLimits(context.Background(), req)
		if err != nil {
			return times, err
		}
		for _, r := range resp.Responses {
			if r.Error != "" || r.Status != gubernator.Status_UNDER_LIMIT {
				return times, fmt.Errorf("the answer is %v", r)
			}
		}
		if len(resp.Responses) != l.items {
			return times, fmt.Errorf("%d answers to %d requests", len(resp.Responses), l.items)
		}
		now := time.Now()
		times = append(times, now.Sub(at))
		at = now
	}
	return times, nil
}
