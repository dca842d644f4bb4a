package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
		goal string
	}{
		{"gcra", ratelimit.GCRA, 6000, "180"},
		{"fixed", ratelimit.Fixed, 6000, "180"},
		{"two-bucket", ratelimit.TwoBucket, 6000, "180"},
		{"weighted, 60 slots, counts up to 255", ratelimit.Weighted, 6000, "360"},
		{"sliding, 60 slots, counts up to 255", ratelimit.Sliding, 6000, "360"},
		{"sliding, 60 slots, counts above 255", ratelimit.Sliding, 60_000, "360"},
		{"sliding, 60 times", ratelimit.Sliding, 61, ""},
	} {
		key, all, err := bytesOf(c.a, c.n)
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

// bytesOf fills all slots of keys of a server, while these pass, and returns the bytes of one.
func bytesOf(a ratelimit.Algorithm, n uint64) (key, all int64, err error) {
	address, stop, err := startServer()
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	admin := goredis.NewClient(&goredis.Options{Addr: address})
	defer admin.Close()
	client, err := newPipelined(address)
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	l, err := limiter(client, a, ratelimit.Limit{N: n, Span: bytesSpan}, latelyredis.Config{Prefix: bytesPrefix})
	if err != nil {
		return 0, 0, err
	}
	queries := make([]ratelimit.Query, bytesKeys)
	for i := range queries {
		queries[i] = ratelimit.Query{Rule: ruleName, Key: []string{bytesClient(i)}, Cost: n / (bytesSlots + 1)}
	}
	take := func() error {
		for _, d := range l.TakeAll(queries, nil) {
			if !d.Allowed {
				return fmt.Errorf("not allowed: %+v", d)
			}
		}
		return nil
	}
	if err := take(); err != nil { // the server has the scripts and its buffers then
		return 0, 0, err
	}
	if err := admin.FlushAll(context.Background()).Err(); err != nil {
		return 0, 0, err
	}
	before, err := usedMemory(admin)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	for slot := range bytesSlots {
		time.Sleep(time.Until(start.Add(time.Duration(slot) * bytesSpan / bytesSlots)))
		if err := take(); err != nil {
			return 0, 0, err
		}
	}
	after, err := usedMemory(admin)
	if err != nil {
		return 0, 0, err
	}
	key, err = admin.MemoryUsage(context.Background(), bytesKey(0)).Result()
	return key, (after - before) / bytesKeys, err
}

// usedMemory returns how many bytes the server has allocated.
func usedMemory(admin *goredis.Client) (int64, error) {
	text, err := admin.Info(context.Background(), "memory").Result()
	if err != nil {
		return 0, err
	}
	_, text, _ = strings.Cut(text, "\r\nused_memory:")
	text, _, _ = strings.Cut(text, "\r\n")
	return strconv.ParseInt(text, 10, 64)
}
