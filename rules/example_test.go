package rules_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A program reads the file that an operator writes, and judges its events under
// it.
func Example() {
	file, err := rules.Parse("rules.yaml", []byte(`
version: 1
limits:
  - name: per-client
    key: client
    limit: 2 per 1m
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := ratelimit.NewLimiter(file.Limits, ratelimit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		fmt.Println(limiter.TakeAt(noon, &e, 1).Allowed)
	}
	// Output:
	// true
	// true
	// false
}

// A file is loaded once. The rules in force are printed as sentences.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nlimits: [{name: login, key: client, limit: 5 per 10m}]\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	file, err := rules.Load(path)
	if err != nil {
		fmt.Println(err) // one line for each mistake
		return
	}
	rule := file.Limits.Rules()[0]
	fmt.Println(rule.Name, rule.Key, rule.Limits[0].N, file.Fields())
	// Output: login client 5 [client]
}

// A program enforces a rules file, and the changes that an operator makes to it.
func ExampleWatch() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	limiter, err := rules.Open(path)
	if err != nil {
		fmt.Println(err) // all mistakes of the file, each with its line and column
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	rules.Watch(ctx, limiter, func(f *rules.File, err error) {
		if err != nil {
			fmt.Println("the old rules stay in force:", err) // or slog.Error
		} else {
			fmt.Println("rules in force:", len(f.Limits.Rules()))
		}
		stop() // a program would watch until it ends
	}, path)
	// Output: rules in force: 1
}

// Every mistake of a file is reported, each with its position.
func ExampleParse_mistakes() {
	_, err := rules.Parse("rules.yaml", []byte(`
version: 1
limits:
  - name: per-client
    key: client
    limit: 60 in 1m
    ban: {after: 20 refusals in 5m, for: 10}
`))
	fmt.Println(err)
	// Output:
	// rules.yaml:6:12: limit: "60 in 1m": must be, for algorithm sliding, "N per DURATION", such as "60 per 1m"
	// rules.yaml:7:42: for: "10": no unit: did you mean 10s?
}

func ExampleFile_Sentences() {
	file, err := rules.Parse("rules.yaml", []byte(`
version: 1
limits:
  - name: per-client
    key: client
    limit: 60 per 1m
    ban: {after: 20 refusals in 5m, for: 10m, factor: 2, max: 24h}
allow: 10.0.0.0/8
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range file.Sentences() {
		fmt.Println(s)
	}
	// Output:
	// per-client: a client may make 60 requests per 1m; the 61st within any 1m is refused. More than 20 refusals in 5m ban it for 10m, each further ban twice as long, at most 24h.
	// allow: 10.0.0.0/8 is never limited and never banned.
}

// Open enforces the limits and bans of a file.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nlimits: [{name: per-client, key: client, limit: 1 per 1h}]\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := rules.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	fmt.Println(limiter.Take(&e).Allowed, limiter.Take(&e).Allowed)
	// Output: true false
}

// A program decides itself what a new version of the file changes.
func ExampleFile_Changes() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
	}
	write("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n")
	file, err := rules.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	write("version: 1\nlimits: [{name: per-client, key: client, limit: 60 per 1m}]\n") // an operator
	for next, err := range file.Changes(context.Background(), time.Millisecond) {
		if err != nil {
			fmt.Println("the old rules stay in force:", err)
			continue
		}
		fmt.Println(next.Limits.Rules()[0].Limits[0].N, "instead of", file.Limits.Rules()[0].Limits[0].N)
		break // a program would go on
	}
	// Output: 60 instead of 100
}

// A form for editing the rules: a draft reads no files.
func ExampleFile_Draft() {
	file, err := rules.Parse("rules.yaml", []byte("version: 1\nlimits: [{name: per-client, key: client, limit: 100 per 1m}]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	draft, err := file.Draft("draft", []byte("version: 1\nlimits: [{name: per-client, key: client, limit: 60 per 1m}]\nallow: {files: cdn.txt}\n"))
	if err != nil {
		fmt.Println(err) // one line for each mistake
		return
	}
	for _, w := range draft.Warnings {
		fmt.Println(w)
	}
	for _, s := range draft.Sentences() {
		fmt.Println(s)
	}
	// Output:
	// draft:3:16: files: "cdn.txt": not read: the rules in force do not name it, and only a rules file on disk reads files
	// per-client: a client may make 60 requests per 1m; the 61st within any 1m is refused.
	// allow: every client in cdn.txt (0 prefixes) is never limited and never banned.
}
