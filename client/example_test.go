package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
)

// server stands for a running one.
func server(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		switch {
		case !ok:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"detail":"rule \"logn\": unknown: must be login","code":"NORULE"}`)
		case r.URL.Path == "/v1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, answer)
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		}
	}))
}

func ExampleClient_Take() {
	s := server(map[string]string{
		"/v1/take": `{"allowed":false,"limit":5,"remaining":0,"retry_after_ms":12000,"reset_after_ms":600000,"rule":"login","banned_until_ms":0}`,
	})
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	d, err := c.Take(context.Background(), "login", 1, "192.0.2.1", "ada")
	if err != nil {
		fmt.Println(err) // it may or may not have been counted
		return
	}
	fmt.Println(d.Allowed, d.Rule, d.RetryAfter)
	// Output: false login 12s
}

func ExampleClient_Top() {
	s := server(map[string]string{
		"/v1/counters/requests/top": `{"top":[{"key":["192.0.2.1"],"lo":812,"hi":840},{"key":["192.0.2.9"],"lo":77,"hi":77}]}`,
	})
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	top, err := c.Top(context.Background(), "requests", 2, 0)
	for _, k := range top {
		fmt.Println(k.Values(), k.Lo, k.Hi)
	}
	fmt.Println(err)
	// Output:
	// [192.0.2.1] 812 840
	// [192.0.2.9] 77 77
	// <nil>
}

func ExampleClient_Events() {
	s := server(map[string]string{
		"/v1/events": "event: ban\ndata: {\"ban\":{\"rule\":\"login\",\"key\":[\"192.0.2.1\",\"ada\"],\"reason\":\"more than 20 refusals in 5m\"}}\n\n",
	})
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for e, err := range c.Events(context.Background()) {
		switch {
		case err != nil:
			fmt.Println("lost") // and connected again, if the caller goes on
			return
		case e.Type == client.Connected:
			fmt.Println("connected: time to read the state")
		case e.Type == api.BanStarted:
			fmt.Println("banned:", e.Ban.Values(), e.Ban.Reason)
		}
	}
	// Output:
	// connected: time to read the state
	// banned: [192.0.2.1 ada] more than 20 refusals in 5m
	// lost
}

func ExampleError() {
	s := server(nil)
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Take(context.Background(), "logn", 1, "192.0.2.1")
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refusal.Code, refusal.Temporary())
	}
	fmt.Println(err)
	// Output:
	// NORULE false
	// NORULE rule "logn": unknown: must be login
}

// An event is judged under all rules that match it, and its answer is reported by its id.
func ExampleClient_CheckID() {
	s := server(map[string]string{
		"/v1/check":   `{"allowed":true,"limit":5,"remaining":4,"retry_after_ms":0,"reset_after_ms":600000,"rule":"failed-logins","banned_until_ms":0,"id":"k3nZ"}`,
		"/v1/outcome": `{"decisions":[{"allowed":true,"limit":5,"remaining":4,"retry_after_ms":0,"reset_after_ms":600000,"rule":"failed-logins","banned_until_ms":0}]}`,
	})
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	d, id, err := c.CheckID(ctx, map[string]string{"client": "192.0.2.1", "method": "POST", "path": "/login"}, 1, time.Minute)
	if err != nil || !d.Allowed {
		fmt.Println("refused:", err)
		return
	}
	// Serve the request, which fails with 401.
	results, err := c.Outcome(ctx, api.OutcomeItem{ID: id, Event: map[string]string{"status": "401"}})
	fmt.Println(len(results), results[0].Rule, err)
	// Output: 1 failed-logins <nil>
}

// A key is banned for an hour by hand.
func ExampleClient_Ban() {
	s := server(map[string]string{
		"/v1/bans": `{"rule":"login","key":["192.0.2.1"],"since":"2026-01-02T12:00:00Z","until":"2026-01-02T13:00:00Z","count":0,"reason":"scraper","source":"admin"}`,
	})
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ban, err := c.Ban(context.Background(), "login", time.Hour, "scraper", "192.0.2.1")
	fmt.Println(ban.Values(), ban.Until.Format(time.TimeOnly), err)
	// Output: [192.0.2.1] 13:00:00 <nil>
}
