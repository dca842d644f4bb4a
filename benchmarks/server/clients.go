package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	lately "github.com/lately-go/lately/client"
)

// floorClient is the client that the others are compared with.
const floorClient = "go-redis, a connection for each caller"

// measureClients prints how often the callers of one process have TAKE answered by one
// server, by Go clients: all of them share one client.
func measureClients(l load, passes int) error {
	s, err := startSelf("lately", "-serve")
	if err != nil {
		return err
	}
	defer s.stop()
	fleet, err := lately.NewFleet(lately.FleetConfig{Nodes: []string{s.addr}})
	if err != nil {
		return err
	}
	defer fleet.Close()
	pool := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: l.conns})
	defer pool.Close()
	shared, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, DisableCache: true, ForceSingleClient: true, AlwaysPipelining: true})
	if err != nil {
		return err
	}
	defer shared.Close()
	ctx := context.Background()
	var rows []*row
	for _, x := range []struct {
		what string
		take func(key string) error
	}{
		{"client.Fleet, one connection", func(key string) error {
			_, err := fleet.Take(ctx, "per-client", 1, key)
			return err
		}},
		{floorClient, func(key string) error { return pool.Do(ctx, "TAKE", "per-client", key).Err() }},
		{"rueidis, pipelining", func(key string) error {
			return shared.Do(ctx, shared.B().Arbitrary("TAKE", "per-client").Keys(key).Build()).Error()
		}},
	} {
		rows = append(rows, &row{subject: s, what: x.what, floor: floorClient, at: 1, ask: func(l load) (answers, error) { return l.callers(x.take) }})
	}
	return l.measure(rows, passes)
}

// callers has as many goroutines as l has connections call take in a loop.
func (l load) callers(take func(key string) error) (answers, error) {
	keys := make([]string, l.keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("192.0.2.%d", i)
	}
	all := make([]asker, l.conns)
	for i := range all {
		all[i] = func(end time.Time) (times []time.Duration, n int, err error) {
			at := time.Now()
			for k := i; at.Before(end); k += l.conns {
				if err := take(keys[k%len(keys)]); err != nil {
					return times, n, err
				}
				n++
				now := time.Now()
				times = append(times, now.Sub(at))
				at = now
			}
			return times, n, nil
		}
	}
	return l.together(all)
}
