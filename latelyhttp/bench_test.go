package latelyhttp

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// BenchmarkMiddleware is what a request costs in the middleware: next to a bare
// handler, and to the limiter's own decision.
func BenchmarkMiddleware(b *testing.B) {
	next := http.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const clients = 10_000
	peers, chains := make([]string, clients), make([][]string, clients)
	for i := range peers {
		peers[i] = fmt.Sprintf("192.0.%d.%d:4711", i>>8, i&255)
		chains[i] = []string{fmt.Sprintf("198.51.100.66, 192.0.%d.%d", i>>8, i&255)}
	}
	rules := func(n uint64) []ratelimit.Rule {
		return []ratelimit.Rule{limited(b, "per-client", n, time.Minute)}
	}
	several := func() []ratelimit.Rule {
		return append(rules(1<<30), limited(b, "route", 1<<30, time.Minute, "client", "path"), limited(b, "key", 1<<30, time.Hour, "api_key"))
	}
	wrap := func(rules []ratelimit.Rule, c Config) http.Handler {
		return mustNew(b, mustLimiter(b, rules...), c).Wrap(next)
	}
	proxies := IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}
	for _, c := range []struct {
		name    string
		handler http.Handler
		proxied bool
	}{
		{"bare", next, false},
		{"no-headers", wrap(rules(1<<30), Config{Headers: NoHeaders}), false},
		{"proxied", wrap(rules(1<<30), Config{Headers: NoHeaders, Identity: proxies}), true},
		{"draft-headers", wrap(rules(1<<30), Config{}), false},
		{"legacy-headers", wrap(rules(1<<30), Config{Headers: Legacy}), false},
		{"three-rules", wrap(several(), Config{}), false},
		{"refused", wrap(rules(0), Config{}), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := request("10.0.0.1:4711", "")
			r.Header.Set("X-Api-Key", "key-1")
			w := &discard{http.Header{}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if c.proxied {
					r.Header["X-Forwarded-For"] = chains[i%clients]
				} else {
					r.RemoteAddr = peers[i%clients]
				}
				clear(w.header)
				c.handler.ServeHTTP(w, r)
			}
		})
	}
	b.Run("limiter-alone", func(b *testing.B) {
		l := mustLimiter(b, rules(1<<30)...)
		var event match.Event
		event.SetString(0, "192.0.2.1")
		var outcomes []ratelimit.Outcome
		b.ReportAllocs()
		for b.Loop() {
			_, outcomes = l.Internal().JudgeAt(time.Now(), &batch.Query{Event: &event, Cost: 1}, outcomes[:0])
		}
	})
}
