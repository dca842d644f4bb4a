package latelyhttp_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// 100 requests a minute per client.
func ExampleNew() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "per-client", Key: match.MustKey("client"),
		Limits: []ratelimit.Limit{{N: 100, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(limits.Wrap(mux))
	defer server.Close()

	codes := make(map[int]int)
	for range 102 {
		response, err := http.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		codes[response.StatusCode]++
	}
	fmt.Println(codes)
	// Output: map[200:100 429:2]
}

// A server behind a load balancer in 10.0.0.0/8: what a client writes into
// X-Forwarded-For changes nothing.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name:   "per-client",
		Key:    match.MustKey("client"),
		Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}},
	})
	if err != nil {
		log.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{
		Identity: latelyhttp.IdentityConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := limits.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	}))

	for i := range 3 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.1:4711" // the load balancer, which appended 192.0.2.7
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d, 192.0.2.7", i))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"), strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 "per-client";r=1;t=60 hello
	// 200 "per-client";r=0;t=60 hello
	// 429 "per-client";r=0;t=60 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["per-client"]}
}

// A limit for each client and route. The middleware is around the mux, so it must look up the pattern; "//items/1" and
// "/items/2?x" are the same route.
func ExamplePatternOf() {
	key, err := match.NewKey(match.Fold{}, "client", "pattern")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{Name: "route", Key: key, Limits: []ratelimit.Limit{{N: 2, Span: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(http.ResponseWriter, *http.Request) {})
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{
		Fields: map[string]func(*http.Request) string{"pattern": latelyhttp.PatternOf(mux)},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := limits.Wrap(mux)
	for _, target := range []string{"/items/1", "/items/2?x", "/items/3"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(target, w.Code)
	}
	// Output:
	// /items/1 200
	// /items/2?x 200
	// /items/3 429
}

// An Identity alone: for logs, or for another limiter.
func ExampleIdentity() {
	identity, err := latelyhttp.NewIdentity(latelyhttp.IdentityConfig{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header:         "Forwarded",
	})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("Forwarded", `for=198.51.100.1, for="[2001:db8:1:2::7]:47011";proto=https`)
	fmt.Println(identity.Client(r))
	fmt.Println(string(identity.AppendKey(nil, r)))
	r.Header.Set("Forwarded", "for=198.51.100.1, for=unknown")
	fmt.Println(identity.Client(r), identity.Stats().BadHeader)
	// Output:
	// 2001:db8:1:2::7
	// 2001:db8:1:2::/64
	// proxy:10.0.0.1 1
}

// Allow is for frameworks whose handlers are not http.Handlers.
func ExampleMiddleware_Allow() {
	limits := latelyhttp.PerClient(1, time.Minute)
	handle := func(w http.ResponseWriter, r *http.Request) {
		lease, allowed := limits.Allow(w, r)
		if !allowed {
			return // the refusal was written
		}
		defer lease.Done()
		fmt.Fprintln(w, "hello")
	}
	for range 2 {
		w := httptest.NewRecorder()
		handle(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 429 "60"
}

// Before new rules are in force, Check finds those whose fields no request has.
func ExampleMiddleware_Check() {
	limiter, err := ratelimit.New(ratelimit.Rule{Name: "per-client", Key: match.MustKey("client"), Limits: []ratelimit.Limit{ratelimit.Per(100, time.Minute)}})
	if err != nil {
		log.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, latelyhttp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	next, err := ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{Name: "per-tenant", Key: match.MustKey("tenant"), Limits: []ratelimit.Limit{ratelimit.Per(100, time.Minute)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := limits.Check(next); err != nil {
		fmt.Println(err)
		return
	}
	if err := limiter.Update(next); err != nil {
		log.Fatal(err)
	}
	// Output: unknown field "tenant" in the rules: must be client, method, path, object, pattern, query, host, protocol, referer, agent, user, a name in Config.Fields, or declared with the header, cookie or parameter that has it
}
