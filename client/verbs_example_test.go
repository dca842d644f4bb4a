package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/rules"
)

// connect starts a server with these rules in this process, and returns a client of it.
func connect(text string) (c *client.Client, stop func()) {
	return connectTo(func() (*rules.File, error) { return rules.Parse("rules.yaml", []byte(text)) })
}

// connectTo is connect for rules that are loaded at the start and at each reload.
func connectTo(load func() (*rules.File, error)) (c *client.Client, stop func()) {
	file, err := load()
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(engine.Config{Rules: file, KeepEvents: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	s, err := httpapi.New(httpapi.Config{
		Config: listen.Config{Engine: e},
		Reload: func(dropBans bool) (api.RuleChanges, error) {
			file, err := load()
			if err != nil {
				return api.RuleChanges{}, err
			}
			return e.Replace(file, dropBans)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(s)
	if c, err = client.New(server.URL, client.Config{}); err != nil {
		log.Fatal(err)
	}
	return c, func() {
		c.Close()
		server.Close()
		e.Close()
	}
}

// An event with fields is judged under all rules that match it.
func ExampleClient_Check() {
	c, stop := connect("version: 1\nlimits: [{name: login, when: {path: /login}, key: client, limit: 2 per 10m}]\n")
	defer stop()
	for range 3 {
		d, err := c.Check(context.Background(), map[string]string{"client": "192.0.2.1", "method": "POST", "path": "/login"}, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Rule, d.Remaining)
	}
	// Output:
	// true login 1
	// true login 0
	// false login 0
}

// A customer may send as many messages a day as its plan allows.
func ExampleClient_TakeLimit() {
	c, stop := connect("version: 1\nlimits: [{name: messages, key: user, limit: {default: 100 per 1d, at_most: 10_000 per 1d}}]\n")
	defer stop()
	plan := uint64(5000) // of this customer, from the database
	d, err := c.TakeLimit(context.Background(), "messages", plan, 1, "ada")
	fmt.Println(d.Allowed, d.Remaining, "of", d.Limit, err)
	// Output: true 4999 of 5000 <nil>
}

// The tokens of an answer are charged when their number is known, even beyond the limit.
func ExampleClient_Charge() {
	c, stop := connect("version: 1\nlimits: [{name: tokens, key: user, limit: 1000 per 1d}]\n")
	defer stop()
	ctx := context.Background()
	if err := c.Charge(ctx, "tokens", 1200, "ada"); err != nil {
		log.Fatal(err)
	}
	d, err := c.Peek(ctx, "tokens", 1, "ada")
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: false 0 <nil>
}

// An upload that failed gives its bytes back.
func ExampleClient_Refund() {
	c, stop := connect("version: 1\nlimits: [{name: upload, key: user, limit: 1000 per 1h}]\n")
	defer stop()
	ctx := context.Background()
	if _, err := c.Take(ctx, "upload", 800, "ada"); err != nil {
		log.Fatal(err)
	}
	returned, err := c.Refund(ctx, "upload", 800, "ada")
	if err != nil {
		log.Fatal(err)
	}
	d, err := c.Peek(ctx, "upload", 1000, "ada")
	fmt.Println(returned, d.Allowed, err)
	// Output: 800 true <nil>
}

// At most one export of a user runs at a time.
func ExampleClient_Release() {
	c, stop := connect("version: 1\nlimits: [{name: exports, key: user, algorithm: in-flight, limit: 1 at once for 10m}]\n")
	defer stop()
	ctx := context.Background()
	for range 2 { // the second is refused while the first runs
		d, err := c.Take(ctx, "exports", 1, "ada")
		fmt.Println(d.Allowed, err)
	}
	ended, err := c.Release(ctx, "exports", 1, "ada") // after the export
	if err != nil {
		log.Fatal(err) // the server ends it after 10 minutes
	}
	d, err := c.Take(ctx, "exports", 1, "ada")
	fmt.Println(ended, d.Allowed, err)
	// Output:
	// true <nil>
	// false <nil>
	// 1 true <nil>
}

// The failed logins of a user no longer count after the password was reset.
func ExampleClient_Reset() {
	c, stop := connect("version: 1\nlimits: [{name: logins, key: user, limit: 5 per 1h}]\n")
	defer stop()
	ctx := context.Background()
	if _, err := c.Take(ctx, "logins", 5, "ada"); err != nil {
		log.Fatal(err)
	}
	if err := c.Reset(ctx, "logins", "ada"); err != nil {
		log.Fatal(err)
	}
	d, err := c.Peek(ctx, "logins", 1, "ada")
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: true 4 <nil>
}

// A call of a language model reserves the most that it can cost, and is settled at its cost.
func ExampleClient_Reserve() {
	c, stop := connect("version: 1\nlimits: [{name: tokens, key: user, limit: 3000 per 1d}]\n")
	defer stop()
	ctx := context.Background()
	r, err := c.Reserve(ctx, "tokens", 2000, time.Minute, "ada")
	if err != nil || !r.Decision.Allowed {
		log.Fatal("refused: ", err)
	}
	if _, err := c.Settle(ctx, r.ID, 731); err != nil {
		log.Fatal(err)
	}
	d, err := c.Peek(ctx, "tokens", 2000, "ada")
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: true 269 <nil>
}

// A ban by hand is found in the list, and ended.
func ExampleClient_Unban() {
	c, stop := connect("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n")
	defer stop()
	ctx := context.Background()
	if _, err := c.Ban(ctx, "per-client", time.Hour, "scraper", "192.0.2.1"); err != nil {
		log.Fatal(err)
	}
	page, err := c.Bans(ctx, client.BanQuery{Text: "192.0.2"})
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range page.Bans {
		fmt.Println(b.Rule, b.Values(), b.Reason)
	}
	ended, err := c.Unban(ctx, "per-client", "192.0.2.1")
	fmt.Println(ended, err)
	// Output:
	// per-client [192.0.2.1] scraper
	// 1 <nil>
}

// A wrong rule has banned a whole network: its bans are ended together.
func ExampleClient_UnbanAll() {
	c, stop := connect("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n")
	defer stop()
	ctx := context.Background()
	for _, address := range []string{"192.0.2.1", "192.0.2.77", "198.51.100.3"} {
		if _, err := c.Ban(ctx, "per-client", time.Hour, "scraper", address); err != nil {
			log.Fatal(err)
		}
	}
	ended, err := c.UnbanAll(ctx, api.BanFilter{Rule: "per-client", Network: "192.0.2.0/24"})
	fmt.Println(ended, err)
	// Output: 2 <nil>
}

// A counter of the rules file counts what a program reports.
func ExampleClient_Add() {
	c, stop := connect("version: 1\ncounters: {downloads: {key: path, spans: [1h]}}\n")
	defer stop()
	ctx := context.Background()
	if err := c.Add(ctx, "downloads", 3, "/lately.tar.gz"); err != nil {
		log.Fatal(err)
	}
	n, err := c.Sum(ctx, "downloads", time.Hour, "/lately.tar.gz")
	fmt.Println(n.Estimate, err)
	// Output: 3 <nil>
}

// The server's data about one client.
func ExampleClient_Key() {
	c, stop := connect("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n")
	defer stop()
	ctx := context.Background()
	if _, err := c.Take(ctx, "per-client", 40, "192.0.2.1"); err != nil {
		log.Fatal(err)
	}
	report, err := c.Key(ctx, []string{"client"}, []string{"192.0.2.1"})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range report.Rules {
		fmt.Println(r.Rule, r.Decision.Remaining, "of", r.Decision.Limit, "left")
	}
	fmt.Println(len(report.Bans), "bans")
	// Output:
	// per-client 59 of 100 left
	// 0 bans
}
