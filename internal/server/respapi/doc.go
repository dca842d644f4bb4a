// Package respapi answers the protocol of Redis from an engine, so that every
// Redis client in any language can ask for decisions:
//
//	> TAKE login ada
//	1) (integer) 1        allowed
//	2) (integer) 5        limit
//	3) (integer) 4        remaining
//	4) (integer) 0        retry after, ms; -1: never
//	5) (integer) 600000   reset after, ms
//	6) "login"            the deciding rule
//	7) (integer) 0        banned until, ms since 1970; 0: not banned
//
// CHECK, TAKE and PEEK answer such an array of seven. An event that a leaky-bucket rule
// allows after a delay has an eighth element, the delay in ms; the server does not wait
// itself. If an id was asked for, by RESERVE or OUTCOME, it is the ninth, after the delay. An event
// that is refused because it lacks a field has ten: the last is the field. RELEASE ends events in progress under an in-flight rule; those whose holder
// has crashed end after the span of the rule. Times are rounded up, so a client that
// waits as told has waited long enough. COMMAND DOCS lists all commands; they are in one
// table, with their roles.
//
// Errors begin with a code: NORULE, BADARG, OVERLOAD or ERR, and as in Redis NOAUTH
// (no token yet), WRONGPASS (an unknown token) or NOPERM (the role may not do that).
//
// # Keys and durations
//
// If a rule or a counter has several fields, the values of a key are joined by a tab.
// Durations are as in the rules file: 500ms, 10m, 1h30m, 7d.
//
// # Events
//
// SUBSCRIBE bans, unbans, hot or rules sends events as JSON; bans:NAME, unbans:NAME and
// hot:NAME are those of one rule. Times are in UTC. A key that is not UTF-8, which JSON
// cannot contain, is in key_base64. Each event is published on both channels, so
// PSUBSCRIBE bans* receives each ban twice, as in Redis.
//
// # Transactions
//
// Clients that wrap their pipelines in a transaction (redis-py does by default, go-redis
// in TxPipelined) find MULTI, EXEC and DISCARD as in Redis: commands are validated and
// queued, and EXEC executes them in order and answers an array. After a command that
// cannot be queued, EXEC answers EXECABORT, and nothing was counted. A transaction is
// not isolated: commands of other connections may be executed between its own, so there is
// no WATCH. A transaction holds at most 1 MiB of commands, and a connection on which one is
// open for more than 10 seconds is closed.
//
// DEL resets keys of CL.THROTTLE.
//
// # Cost
//
// A connection has one goroutine, and one more while it subscribes. Commands that arrive
// in one read are answered in one write. Decisions, adds and reads of one key do
// not allocate, except for a new key, a key of more than a kibibyte, and
// an error. A connection executes one command at a time, so Limits.MaxConnections bounds
// the work of a flood of clients. Connections beyond it are answered OVERLOAD and closed.
//
// # Shutdown
//
// When a server shuts down, or its tokens change, connections are closed between two
// commands, and those that subscribe within a second. Executed commands were answered,
// unless the network or the client was too slow for the reply.
package respapi
