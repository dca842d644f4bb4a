// Package rules reads the rules file: it parses it, says what is wrong with it,
// and compiles it to a [ratelimit.Set] and a [hotkey.Set]. The file that a
// server enforces is the file that a replay runs over yesterday's log.
//
//	limiter, err := rules.Open("rules.yaml")
//	if err != nil {
//		return err // every mistake in the file: rules.yaml:12:10: limit: "60 in 1m": must be ...
//	}
//	go rules.Watch(ctx, "rules.yaml", limiter, report) // applies changes of the file
//
// Open is for programs that enforce the limits and bans of a file with the default
// memory store. For other stores, or for the counters and hot rules, call [Load] and
// make the rest from its [File].
//
// The file is YAML, and docs/rules.md is its reference; [Schema] is the same
// for editors. [File.Sentences] says what the rules mean, in words.
//
// # Errors
//
// A file with mistakes yields [Errors], one [Error] for each of them, in the
// order of the file, with line, column, what was found and what is allowed. A
// file is taken whole or not at all. What is allowed but hardly meant is a
// warning: see [File.Warnings].
//
// Anchors, aliases, merge keys and tags are refused, so that each rule stands
// where it is read; a file is at most [MaxSize] and nests at most 16 deep.
package rules
