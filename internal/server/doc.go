// Package server is the server of lately: it starts an engine with its listeners,
// restores and saves its state, reloads its files and shuts it down. The command
// `lately serve` is a thin main function over it:
//
//	config := server.Config{RulesFiles: []string{"rules.yaml"}, Data: "/var/lib/lately"}
//	s, err := server.New(config, "my program 1.0", slog.Default())
//	...
//	err = s.Run(ctx)
//
// The engine (internal/server/engine) judges events; the listeners (respapi, httpapi) answer clients from it. docs/dev/architecture.md
// describes all packages, and follows a request, a reload and a ban through them.
package server
