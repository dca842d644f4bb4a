// Package rules parses the rules file, reports its mistakes, and compiles it to a
// [ratelimit.Set] and [hotkey.Rule] values. The server and Go programs enforce the
// file, and a replay tests it on a log.
//
//	limiter, err := rules.Open("rules.yaml")
//	if err != nil {
//		return err // every mistake in the file: rules.yaml:12:10: limit: "60 in 1m": must be ...
//	}
//	go rules.Watch(ctx, limiter, report, "rules.yaml") // applies changes of the file
//
// Open enforces the limits and bans of a file with a memory store of the default size.
// For another size, or for the counters and hot rules, call [Load] and use its [File].
//
// The file is YAML. docs/rules.md is its reference, rules/schema.json its JSON Schema for editors.
// [File.Sentences] returns the meaning of the rules as sentences.
//
// # Errors
//
// A file with mistakes returns [Errors]: an [Error] for each of them, in the order of
// the file, with line, column, the value and what it must be. A file is accepted as a
// whole or not at all. Values that are valid but probably not intended are warnings,
// see [File.Warnings].
//
// Anchors, aliases, merge keys and tags are rejected, so that each rule is complete
// where it stands. A file has at most 1 MiB and 16 levels.
package rules
