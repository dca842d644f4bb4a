package replay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// accessLog returns n requests of one client, a second apart, in Common Log Format.
func accessLog(n int) *strings.Reader {
	var b strings.Builder
	for i := range n {
		t := time.Date(2026, 3, 2, 14, 0, i, 0, time.UTC)
		fmt.Fprintf(&b, "192.0.2.1 - - [%s] \"POST /login HTTP/1.1\" 401 12\n", t.Format("02/Jan/2006:15:04:05 -0700"))
	}
	return strings.NewReader(b.String())
}

// ruleFile returns a rules file with one limit per client.
func ruleFile(limit string) *rules.File {
	f, err := rules.Parse("rules.yaml", []byte("version: 1\nlimits:\n  - {name: per-client, key: client, limit: "+limit+"}\n"))
	if err != nil {
		log.Fatal(err)
	}
	return f
}

// A limit of 10 a minute is tested on a log, read from standard input here.
func ExampleRun() {
	limit, err := replay.ParseWhatIf(replay.Limit, "10/1m")
	if err != nil {
		log.Fatal(err)
	}
	report, err := replay.Run(context.Background(), replay.Config{
		Files: []string{"-"}, Stdin: accessLog(25), WhatIfs: []replay.WhatIf{limit},
	})
	if err != nil {
		log.Fatal(err)
	}
	rule := report.Rules[0]
	fmt.Printf("%d events, %d refused, %d key\n", report.Events, *rule.Refused, *rule.KeysRefused)
	// Output: 25 events, 15 refused, 1 key
}

// A stricter rules file is compared with the rules in force.
func ExampleDiff() {
	d, err := replay.Diff(context.Background(), replay.DiffConfig{
		Config: replay.Config{Files: []string{"-"}, Stdin: accessLog(25)},
		Old:    ruleFile("20 per 1m"), New: ruleFile("10 per 1m"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Old.Refused, d.New.Refused, d.NewlyRefused)
	// Output: 5 15 10
}

// The tests of a rules file are run, as by lately test.
func ExampleTest() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.test.yaml")
	if err := os.WriteFile(path, []byte(`version: 1
tests:
  - name: the 11th request in a minute is refused
    events:
      - {at: 0s, event: {client: 192.0.2.1}, repeat: 10 every 1s, expect: allowed}
      - {at: 59s, event: {client: 192.0.2.1}, expect: refused by per-client}
`), 0o600); err != nil {
		log.Fatal(err)
	}
	report, err := replay.Test(context.Background(), ruleFile("10 per 1m"), path, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, test := range report.Tests {
		fmt.Println(test.Name, test.Events, len(test.Failures))
	}
	// Output: the 11th request in a minute is refused 11 0
}

// The last refusal of a client is explained by the requests that filled its window.
func ExampleExplain() {
	x, err := replay.Explain(context.Background(), replay.ExplainConfig{
		Config: replay.Config{Files: []string{"-"}, Stdin: accessLog(12), Rules: ruleFile("10 per 1m")},
		Value:  "192.0.2.1",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(x.Rule, x.Allowed, len(x.Rules[0].Counted), "requests in the window")
	fmt.Println("allowed again", x.NextPasses.Sub(x.Event.T.Time), "later")
	// Output:
	// per-client false 10 requests in the window
	// allowed again 49s later
}

// The limits that a log suggests, and what each would refuse.
func ExampleSuggest() {
	s, err := replay.Suggest(context.Background(), replay.SuggestConfig{
		Config: replay.Config{Files: []string{"-"}, Stdin: accessLog(25)},
	})
	if err != nil {
		log.Fatal(err)
	}
	file, err := rules.Parse("suggested.yaml", []byte(s.Rules))
	if err != nil {
		log.Fatal(err)
	}
	for _, rule := range file.Limits.Rules() {
		fmt.Println(rule.Name, rule.Limits[0].N, rule.Limits[0].Span)
	}
	// Output: client-1s 1 1s
}
