package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

const (
	bytesKeys   = 4000
	bytesSpan   = 6 * time.Second // as many bytes as a minute: numbers have fixed widths
	bytesSlots  = 60
	bytesPrefix = "lately:"
)

// printBytes prints what a key of each algorithm takes when all of its slots are used: by MEMORY
// USAGE, which leaves out the entry of the time to live and the tables, and as what the memory of
// the server has grown by, divided by the keys.
func printBytes() error {
	fmt.Printf("\n%d keys such as %s\n\n", bytesKeys, bytesKey(0))
	fmt.Println("| algorithm | MEMORY USAGE | all included | goal |")
	fmt.Println("|---|--:|--:|--:|")
	for _, c := range []struct {
		name string
		a    ratelimit.Algorithm
		n    uint64
		// So much is taken of each key in each of so many slots. A few are enough where there are none.
		cost  uint64
		slots int
		goal  string
	}{
		{"gcra", ratelimit.GCRA, 6000, 1000, 6, "180"},
		{"fixed", ratelimit.Fixed, 6000, 1000, 6, "180"},
		{"two-bucket", ratelimit.TwoBucket, 6000, 1000, 6, "180"},
		{"sliding, 60 slots, counts up to 255", ratelimit.Sliding, 6000, 98, bytesSlots, "360"},
		{"sliding, 60 slots, counts above 255", ratelimit.Sliding, 60_000, 980, bytesSlots, "360"},
		{"sliding, 60 times", ratelimit.Sliding, 61, 1, bytesSlots, ""},
	} {
		key, all, err := bytesOf(c.a, c.n, c.cost, c.slots)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("| %s | %d | %d | %s |\n", c.name, key, all, c.goal)
	}
	return nil
}

// bytesKey returns the name of the i-th key.
func bytesKey(i int) string { return bytesPrefix + "{client=" + bytesClient(i) + "}:" + ruleName }

func bytesClient(i int) string { return fmt.Sprintf("203.0.%d.%d", 100+i/100, 100+i%100) }

// bytesOf fills so many slots of keys of a server, while these pass, and returns the bytes of one.
func bytesOf(a ratelimit.Algorithm, n, cost uint64, slots int) (key, all int64, err error) {
	address, stop, err := startServer()
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	admin := goredis.NewClient(&goredis.Options{Addr: address})
	defer admin.Close()
	if err := takeSlots(address, a, n, cost, 1); err != nil { // the server has the scripts then
		return 0, 0, err
	}
	if err := admin.FlushAll(context.Background()).Err(); err != nil {
		return 0, 0, err
	}
	before, err := usedMemory(admin)
	if err != nil {
		return 0, 0, err
	}
	if err := takeSlots(address, a, n, cost, slots); err != nil {
		return 0, 0, err
	}
	after, err := usedMemory(admin)
	if err != nil {
		return 0, 0, err
	}
	key, err = admin.MemoryUsage(context.Background(), bytesKey(0)).Result()
	return key, (after - before) / bytesKeys, err
}

// takeSlots takes cost of each key in each of so many slots, while these pass, by a client of its own.
func takeSlots(address string, a ratelimit.Algorithm, n, cost uint64, slots int) error {
	client, err := newPipelined(address)
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := limiter(client, a, ratelimit.Limit{N: n, Span: bytesSpan}, latelyredis.Config{Prefix: bytesPrefix})
	if err != nil {
		return err
	}
	queries := make([]batch.Query, bytesKeys)
	for i := range queries {
		queries[i] = batch.Query{Rule: ruleName, Key: []string{bytesClient(i)}, Cost: cost}
	}
	start := time.Now()
	for slot := range slots {
		time.Sleep(time.Until(start.Add(time.Duration(slot) * bytesSpan / bytesSlots)))
		for _, d := range l.Internal().TakeAll(queries, nil) {
			if !d.Allowed {
				return fmt.Errorf("not allowed: %+v", d)
			}
		}
	}
	return nil
}

// usedMemory returns how many bytes the server has allocated when no client but admin is connected: the
// buffers of others depend on the moment, and 4,000 keys are few beside them.
func usedMemory(admin *goredis.Client) (int64, error) {
	for {
		text, err := admin.Info(context.Background(), "clients", "memory").Result()
		if err != nil {
			return 0, err
		}
		if infoNumber(text, "connected_clients") == 1 {
			return infoNumber(text, "used_memory"), nil
		}
		time.Sleep(time.Millisecond)
	}
}

// infoNumber returns a number that INFO tells, or 0.
func infoNumber(text, name string) int64 {
	_, after, _ := strings.Cut(text, "\r\n"+name+":")
	digits, _, _ := strings.Cut(after, "\r\n")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}
