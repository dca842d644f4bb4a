package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRate asks redis_rate, the limiter over Redis by a script that go-redis' users
// take, as its README does: one client with a connection for each caller.
type redisRate struct {
	client  *redis.Client
	limiter *redis_rate.Limiter
}

func newRedisRate(addr string, conns int) *redisRate {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: conns})
	return &redisRate{client, redis_rate.NewLimiter(client)}
}

func (r *redisRate) ask(l load) (answers, error) {
	all := make([]asker, l.conns)
	for i := range all {
		all[i] = func(end time.Time) (times []time.Duration, n int, err error) {
			at := time.Now()
			for k := i; at.Before(end); k += l.conns {
				if err := r.take(fmt.Sprintf("192.0.2.%d", k%l.keys)); err != nil {
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

func (r *redisRate) take(key string) error {
	result, err := r.limiter.Allow(context.Background(), key, redis_rate.PerHour(1_000_000_000))
	if err == nil && result.Allowed != 1 {
		err = fmt.Errorf("redis_rate refuses %s", key)
	}
	return err
}
