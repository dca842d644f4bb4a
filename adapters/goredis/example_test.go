package latelygoredis_test

import (
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	latelygoredis "github.com/lately-go/lately/adapters/goredis"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// The limits of all processes with these rules are in the Redis that the program uses already.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()

	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 100, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := latelygoredis.NewConn(client)
	if err != nil {
		log.Fatal(err)
	}
	store, err := latelyredis.New(conn, set, latelyredis.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: store})
	if err != nil {
		log.Fatal(err)
	}

	var event match.Event
	event.SetString(match.Client, "192.0.2.7")
	if d := limiter.Take(&event); !d.Allowed {
		log.Printf("refused by %s, again in %v", d.Rule, d.RetryAfter)
	}
}
