// Command redis measures the store of package latelyredis beside redis_rate and plain INCR,
// on a redis-server that it starts: 64 callers, 100,000 keys and one key.
//
//	go run ./redis -seconds 2 -passes 5
//
// Of each row it prints the median of the passes: decisions per second, and how much
// processor time the server and this process took for each. Rows take turns.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A row is one way to decide about a key.
type row struct {
	name   string
	keys   int
	decide func(ctx context.Context, key string) error
	passes []figures
}

// figures are those of one pass.
type figures struct{ rate, server, client float64 } // per second, and microseconds for each

func main() {
	seconds := flag.Float64("seconds", 1, "how long a pass of a row takes")
	passes := flag.Int("passes", 3, "passes of each row")
	callers := flag.Int("callers", 64, "how many goroutines ask at the same time")
	flag.Parse()
	if err := run(time.Duration(*seconds*float64(time.Second)), *passes, *callers); err != nil {
		log.Fatal(err)
	}
}

func run(length time.Duration, passes, callers int) error {
	dir, err := os.MkdirTemp("", "lately-redis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	port := freePort()
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Wait()
	defer server.Process.Kill()
	plain := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:" + port, PoolSize: callers, MaxRetries: -1})
	defer plain.Close()
	for plain.Ping(context.Background()).Err() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	pipelined, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:" + port}, DisableRetry: true, DisableCache: true, AlwaysPipelining: true,
	})
	if err != nil {
		return err
	}
	defer pipelined.Close()
	rows, err := rowsOf(plain, pipelined)
	if err != nil {
		return err
	}
	for range passes {
		for _, r := range rows {
			f, err := r.measure(plain, length, callers)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.passes = append(r.passes, f)
		}
	}
	fmt.Printf("%d callers, median of %d passes of %v\n\n", callers, passes, length)
	fmt.Println("| row | keys | per second | server µs | client µs |")
	fmt.Println("|---|---|---|---|---|")
	for _, r := range rows {
		slices.SortFunc(r.passes, func(a, b figures) int { return int(a.rate - b.rate) })
		f := r.passes[len(r.passes)/2]
		fmt.Printf("| %s | %d | %.0f | %.2f | %.2f |\n", r.name, r.keys, f.rate, f.server, f.client)
	}
	return nil
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// manyKeys is the number of keys of rows about many.
const manyKeys = 100_000

func rowsOf(plain *goredis.Client, pipelined rueidis.Client) (rows []*row, err error) {
	limiter := redis_rate.NewLimiter(plain)
	rows = []*row{
		{name: "INCR, go-redis", keys: manyKeys, decide: func(ctx context.Context, key string) error {
			return plain.Incr(ctx, key).Err()
		}},
		{name: "INCR, rueidis", keys: manyKeys, decide: func(ctx context.Context, key string) error {
			return pipelined.Do(ctx, pipelined.B().Incr().Key(key).Build()).Error()
		}},
		{name: "redis_rate", keys: manyKeys, decide: func(ctx context.Context, key string) error {
			_, err := limiter.Allow(ctx, key, redis_rate.PerMinute(1000))
			return err
		}},
	}
	for _, c := range []struct {
		name string
		a    ratelimit.Algorithm
		n    uint64
		keys int

		batched bool
	}{
		{"gcra 1000/min", ratelimit.GCRA, 1000, manyKeys, false},
		{"two-bucket 1000/min", ratelimit.TwoBucket, 1000, manyKeys, false},
		{"weighted 1000/min, 60 slots", ratelimit.Weighted, 1000, manyKeys, false},
		{"sliding 1000/min, 60 slots", ratelimit.Sliding, 1000, 1000, false},
		{"sliding 100/min, times", ratelimit.Sliding, 100, manyKeys, false},
		{"sliding 100/min, times", ratelimit.Sliding, 100, 1, false},
		{"gcra 1000/min", ratelimit.GCRA, 1000, 1, false},
		{"sliding 10^7/min, batched", ratelimit.Sliding, 10_000_000, 1000, true},
		{"sliding 10^7/min, batched", ratelimit.Sliding, 10_000_000, 100, true},
		{"gcra 10^9/min, batched", ratelimit.GCRA, 1_000_000_000, 1, true},
	} {
		r, err := ours(pipelined, c.name, c.a, c.n, c.keys, c.batched, len(rows))
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// ours is a row of a Limiter over latelyredis.
func ours(client rueidis.Client, name string, a ratelimit.Algorithm, n uint64, keys int, batched bool, i int) (*row, error) {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-client", Key: match.MustKey("client"), Algorithm: a, Limits: []ratelimit.Limit{{N: n, Span: time.Minute}},
		OnStoreFailure: ratelimit.FailClosed,
	})
	if err != nil {
		return nil, err
	}
	store, err := latelyredis.New(client, set, latelyredis.Config{Prefix: fmt.Sprintf("row%d:", i), Batched: batched})
	if err != nil {
		return nil, err
	}
	l, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: store, StoreTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	return &row{name: "lately " + name, keys: keys, decide: func(_ context.Context, key string) error {
		var e match.Event
		e.SetString(match.Client, key)
		return l.Take(&e).Err
	}}, nil
}

// measure asks for a while, with all callers.
func (r *row) measure(admin *goredis.Client, length time.Duration, callers int) (f figures, err error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	var stop atomic.Bool
	var all sync.WaitGroup
	serverBefore, clientBefore, start := serverTime(admin), ownTime(), time.Now()
	for range callers {
		all.Go(func() {
			n := int64(0)
			for ctx := context.Background(); !stop.Load(); n++ {
				k := rand.IntN(r.keys)
				if err := r.decide(ctx, fmt.Sprintf("10.%d.%d.%d", k>>16&255, k>>8&255, k&255)); err != nil {
					failed.Store(&err)
					return
				}
			}
			count.Add(n)
		})
	}
	time.Sleep(length)
	stop.Store(true)
	all.Wait()
	took, n := time.Since(start), float64(count.Load())
	if err := failed.Load(); err != nil {
		return f, *err
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / n }
	return figures{n / took.Seconds(), micros(serverTime(admin) - serverBefore), micros(ownTime() - clientBefore)}, nil
}

// serverTime returns the processor time that the server has taken.
func serverTime(c *goredis.Client) (d time.Duration) {
	text, err := c.Info(context.Background(), "cpu").Result()
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			s, _ := strconv.ParseFloat(value, 64)
			d += time.Duration(s * float64(time.Second))
		}
	}
	return d
}

// ownTime returns the processor time that this process has taken.
func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
