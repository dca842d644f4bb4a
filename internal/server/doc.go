// Package server is lately as a server: the listeners, what they ask, and its life
// from the first start to the last snapshot. The command `lately serve` is a thin
// main over it, and a program of one's own can be another:
//
//	config := server.Config{RulesFile: "rules.yaml", Data: "/var/lib/lately"}
//	s, err := server.New(config, "my program 1.0", slog.Default())
//	...
//	err = s.Run(ctx)
//
// The rooms below it are
//
//	internal/server/engine    what listeners ask: rules, decisions, counters, bans, events
//	internal/server/access    tokens and roles
//	internal/server/respapi   the RESP listener
//	internal/server/httpapi   the HTTP listener
//	internal/server/console   the web console's files
package server
