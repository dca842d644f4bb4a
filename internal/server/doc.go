// Package server is the server of lately: it starts an engine with its listeners,
// restores and saves its state, reloads its files and shuts it down. The command
// `lately serve` is a thin main function over it:
//
//	config := server.Config{RulesFiles: []string{"rules.yaml"}, Data: "/var/lib/lately"}
//	s, err := server.New(config, "my program 1.0", slog.Default())
//	...
//	err = s.Run(ctx)
//
// Its packages are
//
//	internal/server/engine    rules, decisions, counters, bans, events
//	internal/server/access    tokens, roles and limits of clients
//	internal/server/respapi   the RESP listener
//	internal/server/httpapi   the HTTP listener
//	internal/server/console   the web console's files
package server
