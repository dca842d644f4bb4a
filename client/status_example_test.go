package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/rules"
)

// A check of the server's health: what it has decided since its start, and what it could not write.
func ExampleClient_Status() {
	c, stop := connect("version: 1\nlimits: [{name: login, key: client, limit: 2 per 10m}]\n")
	defer stop()
	ctx := context.Background()
	for range 5 {
		if _, err := c.Take(ctx, "login", 1, "192.0.2.1"); err != nil {
			log.Fatal(err)
		}
	}
	s, err := c.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Totals.Allowed, "allowed,", s.Totals.Refused, "refused,", s.Bans.Held, "banned")
	if s.Storage.JournalError != "" {
		fmt.Println("bans are not on disk:", s.Storage.JournalError)
	}
	// Output: 2 allowed, 3 refused, 0 banned
}

// The rules in force.
func ExampleClient_Rules() {
	c, stop := connect("version: 1\nlimits: [{name: login, key: client, limit: 5 per 10m}]\n")
	defer stop()
	set, err := c.Rules(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range set.Rules {
		fmt.Println(r.Name+":", r.Kind, r.Fields)
	}
	// Output: login: limit [client]
}

// A deployment replaces the rules file. A file with mistakes changes nothing.
func ExampleClient_Reload() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	deploy := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	deploy("version: 1\nlimits: [{name: login, key: client, limit: 5 per 10m}]\n")
	c, stop := connectTo(func() (*rules.File, error) { return rules.Load(path) })
	defer stop()
	ctx := context.Background()

	deploy("version: 1\nlimits:\n- {name: login, key: client, limit: 5 in 10m}\n")
	_, err = c.Reload(ctx, false)
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		for _, m := range refusal.Mistakes {
			fmt.Printf("line %d, column %d: %s\n", m.Line, m.Column, m.Message)
		}
	}
	deploy("version: 1\nlimits:\n- {name: login, key: client, limit: 3 per 10m}\n- {name: search, key: client, limit: 60 per 1m}\n")
	changes, err := c.Reload(ctx, false)
	fmt.Println("changed:", changes.Changed, "added:", changes.Added, err)
	// Output:
	// line 3, column 37: limit: "5 in 10m": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
	// changed: [login] added: [search] <nil>
}

// Before a stricter limit is enforced, it judges the recent events of the server.
func ExampleClient_TryRules() {
	c, stop := connect("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n")
	defer stop()
	ctx := context.Background()
	for range 10 {
		if _, err := c.Check(ctx, map[string]string{"client": "192.0.2.1", "path": "/"}, 1); err != nil {
			log.Fatal(err)
		}
	}
	trial, err := c.TryRules(ctx, api.TrialRequest{Rules: "version: 1\nlimits: [{name: per-client, key: client, limit: 4 per 1m}]\n"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(trial.Events, "events, newly refused:", trial.Changes.NewlyRefused)
	for _, k := range trial.Changes.Keys {
		fmt.Println(k.Values(), "would be refused", k.NewlyRefused, "times")
	}
	// Output:
	// 10 events, newly refused: 6
	// [192.0.2.1] would be refused 6 times
}

// The pages that are requested most right now.
func ExampleClient_Hot() {
	c, stop := connect("version: 1\nhot: [{name: page, key: path, threshold: 3 per 1m, hold: 10m}]\n")
	defer stop()
	ctx := context.Background()
	for range 5 {
		if _, err := c.Check(ctx, map[string]string{"path": "/product/7"}, 1); err != nil {
			log.Fatal(err)
		}
	}
	var keys []api.HotKey
	for len(keys) == 0 { // the server updates the list every 10 ms
		var err error
		if keys, err = c.Hot(ctx); err != nil {
			log.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	for _, k := range keys {
		fmt.Println(k.Rule, k.Values(), "at least", k.Lo)
	}
	stats, err := c.HotStats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range stats.Rules {
		fmt.Println(r.Rule+":", r.Events, "events of", r.Keys, "key,", r.Hot, "hot")
	}
	// Output:
	// page [/product/7] at least 5
	// page: 5 events of 1 key, 1 hot
}
