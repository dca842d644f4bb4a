// Command redis measures the store of package latelyredis beside redis_rate and plain INCR,
// on a redis-server that it starts: 64 callers, 100,000 keys and one key, without and with
// a delay between client and server.
//
//	go run ./redis -seconds 2 -passes 5
//
// Of each row it prints the median of the passes: decisions per second, how many times those of
// redis_rate with the same delay, and how much processor time the server and this process took for
// each. Rows take turns. Then it prints the bytes of a key for each algorithm.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
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
	delay  time.Duration
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
	server, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	admin := goredis.NewClient(&goredis.Options{Addr: server})
	defer admin.Close()
	var rows []*row
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		address := server
		if delay > 0 {
			if address, err = relay(address, delay); err != nil {
				return err
			}
		}
		plain := goredis.NewClient(&goredis.Options{Addr: address, PoolSize: callers, MaxRetries: -1})
		defer plain.Close()
		pipelined, err := newPipelined(address)
		if err != nil {
			return err
		}
		defer pipelined.Close()
		some, err := rowsOf(plain, pipelined, delay)
		if err != nil {
			return err
		}
		rows = append(rows, some...)
	}
	for range passes {
		for _, r := range rows {
			f, err := r.measure(admin, length, callers)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.passes = append(r.passes, f)
		}
	}
	fmt.Printf("%d callers, median of %d passes of %v\n\n", callers, passes, length)
	printRows(rows)
	stop()
	return printBytes()
}

// peer is the name of the row that others are compared with.
const peer = "redis_rate"

func printRows(rows []*row) {
	peers := make(map[time.Duration]float64)
	for _, r := range rows {
		slices.SortFunc(r.passes, func(a, b figures) int { return int(a.rate - b.rate) })
		if r.name == peer {
			peers[r.delay] = r.median().rate
		}
	}
	fmt.Println("| row | delay | keys | a second | times redis_rate | server µs | client µs |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|")
	for _, r := range rows {
		f := r.median()
		fmt.Printf("| %s | %v | %d | %.0f | %.2f | %.2f | %.2f |\n", r.name, r.delay, r.keys, f.rate, f.rate/peers[r.delay], f.server, f.client)
	}
}

// median is that of sorted passes.
func (r *row) median() figures { return r.passes[len(r.passes)/2] }

// startServer starts a server, and returns when it answers.
func startServer() (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "lately-redis-")
	if err != nil {
		return "", nil, err
	}
	port := freePort()
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--slowlog-log-slower-than", "-1") // its entries would be taken for memory of keys
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	address = "127.0.0.1:" + port
	client := goredis.NewClient(&goredis.Options{Addr: address})
	defer client.Close()
	for client.Ping(context.Background()).Err() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return address, sync.OnceFunc(func() {
		server.Process.Kill()
		server.Wait()
		os.RemoveAll(dir)
	}), nil
}

// newPipelined returns a client that puts all goroutines on one connection.
func newPipelined(address string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, DisableRetry: true, DisableCache: true, AlwaysPipelining: true,
	})
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

// rowsOf returns the rows with clients that are delayed by so much: all without a delay, and
// else the peers and two of ours.
func rowsOf(plain *goredis.Client, pipelined rueidis.Client, delay time.Duration) (rows []*row, err error) {
	rate := redis_rate.NewLimiter(plain)
	rows = []*row{
		{name: "INCR, go-redis", keys: manyKeys, decide: func(ctx context.Context, key string) error {
			return plain.Incr(ctx, key).Err()
		}},
		{name: "INCR, rueidis", keys: manyKeys, decide: func(ctx context.Context, key string) error {
			return pipelined.Do(ctx, pipelined.B().Incr().Key(key).Build()).Error()
		}},
		{name: peer, keys: manyKeys, decide: func(ctx context.Context, key string) error {
			_, err := rate.Allow(ctx, key, redis_rate.PerMinute(1000))
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
		{"sliding 100/min, times", ratelimit.Sliding, 100, manyKeys, false},
		{"two-bucket 1000/min", ratelimit.TwoBucket, 1000, manyKeys, false},
		{"sliding 1000/min, 60 slots", ratelimit.Sliding, 1000, 1000, false},
		{"gcra 10^8/min, allowed", ratelimit.GCRA, 100_000_000, 1, false},
		{"sliding 10^8/min, 60 slots, allowed", ratelimit.Sliding, 100_000_000, 1, false},
		{"sliding 100/min, times, refused", ratelimit.Sliding, 100, 1, false},
		{"gcra 1000/min, refused", ratelimit.GCRA, 1000, 1, false},
		{"sliding 10^7/min, batched", ratelimit.Sliding, 10_000_000, 1000, true},
		{"sliding 10^7/min, batched", ratelimit.Sliding, 10_000_000, 100, true},
		{"gcra 10^9/min, batched", ratelimit.GCRA, 1_000_000_000, 1, true},
	} {
		if delay > 0 && len(rows) == 5 {
			break
		}
		prefix := fmt.Sprintf("row%d,%v:", len(rows), delay)
		l, err := limiter(pipelined, c.a, ratelimit.Limit{N: c.n, Span: time.Minute}, latelyredis.Config{Prefix: prefix, Batched: c.batched})
		if err != nil {
			return nil, err
		}
		rows = append(rows, &row{name: "lately " + c.name, keys: c.keys, decide: func(_ context.Context, key string) error {
			var e match.Event
			e.SetString(match.Client, key)
			return l.Take(&e).Err
		}})
	}
	for _, r := range rows {
		r.delay = delay
	}
	return rows, nil
}

// limiter returns one with a limit for each client, which fails while Redis does not answer.
func limiter(client rueidis.Client, a ratelimit.Algorithm, limit ratelimit.Limit, c latelyredis.Config) (*ratelimit.Limiter, error) {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: ruleName, Key: match.MustKey("client"), Algorithm: a, Limits: []ratelimit.Limit{limit}, OnStoreFailure: ratelimit.FailClosed,
	})
	if err != nil {
		return nil, err
	}
	store, err := latelyredis.New(latelyredis.NewConn(client), set, c)
	if err != nil {
		return nil, err
	}
	return ratelimit.NewLimiter(set, ratelimit.Config{Store: store, StoreTimeout: 10 * time.Second})
}

const ruleName = "per-client"

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
