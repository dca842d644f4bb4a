package latelyredis_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// Processes with these rules and this server allow each client 100 requests a minute
// together.
func Example() {
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-client", Key: match.MustKey("client"),
		Limits:         []ratelimit.Limit{{N: 100, Span: time.Minute}},
		OnStoreFailure: ratelimit.FailLocal,
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:      []string{"127.0.0.1:6379"},
		DisableRetry:     true,
		DisableCache:     true,
		AlwaysPipelining: true,
		DialCtxFn:        latelyredis.Dial, // or a damaged reply may end the program
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, err := latelyredis.New(latelyredis.NewConn(client), set, latelyredis.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(context.Background()); err != nil {
		log.Print(err)
	}
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: store, StoreTimeout: 20 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}

	var event match.Event
	event.SetString(match.Client, "192.0.2.7")
	if d := limiter.Take(&event); !d.Allowed {
		log.Printf("refused by %s, again in %v", d.Rule, d.RetryAfter)
	}
}

// Counts that all processes share: an add in one is in the counts of all within some hundred milliseconds.
func ExampleCounters() {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}, DialCtxFn: latelyredis.Dial})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	counters, err := latelyredis.NewCounters(latelyredis.CountersConfig{})
	if err != nil {
		log.Fatal(err)
	}
	pages, err := counters.Counter("pages", window.TableConfig{}, window.Last(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	counters.Connect(latelyredis.NewConn(client))
	defer counters.Close()

	pages.Add("/", 1)
	table, now := pages.Counts()
	top, err := table.TopAt(now, 10, time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	for _, page := range top {
		log.Println(page.Key, page.Lo)
	}
}
