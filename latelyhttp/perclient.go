package latelyhttp

import (
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// PerClient returns middleware that allows each client n requests in any window of span, in
// this process's memory:
//
//	http.ListenAndServe("localhost:8080", latelyhttp.PerClient(100, time.Minute).Wrap(mux))
//
// The client is the peer of the connection. Behind a proxy all requests come from one peer: use
// [New] with [Config.Identity] there, and for several limits, bans or a rules file.
//
// It panics if n or span is not one that a [ratelimit.Limit] can have.
func PerClient(n uint64, span time.Duration) *Middleware {
	limiter, err := ratelimit.New(ratelimit.Rule{Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{ratelimit.Per(n, span)}})
	if err != nil {
		panic("latelyhttp: " + err.Error())
	}
	m, err := New(limiter, Config{})
	if err != nil {
		panic(err) // the zero Config is valid
	}
	return m
}
