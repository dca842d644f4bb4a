// Package respapi answers the protocol of Redis from an engine, so that every
// Redis client in any language asks for decisions:
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
// admits and that has to wait has an eighth element, the delay in ms; the server does
// not wait itself. RELEASE ends events under way under an in-flight rule; those whose
// holder has crashed end after the rule's span. Times are rounded up: who
// waits as told has waited long enough. COMMAND DOCS says what commands there are;
// they stand in one table, with who may use them.
//
// Errors begin with a code: NORULE, BADARG, OVERLOAD or ERR, and as in Redis NOAUTH
// (no token yet), WRONGPASS (an unknown token) or NOPERM (the role may not do that).
//
// # Keys and durations
//
// Where a rule or a counter counts by several fields, the values of a key are joined
// by a tab. Durations are as in the rules file: 500ms, 10m, 1h30m, 7d.
//
// # Events
//
// SUBSCRIBE bans, unbans, hot or rules to be told what happens as JSON, or one rule's
// with bans:NAME, unbans:NAME and hot:NAME. Times are in UTC. A key with bytes that are
// not UTF-8, which JSON has no way to say, is in key_base64 as it is. Each event is published on both, so
// PSUBSCRIBE bans* is told of each ban twice, as Redis has it.
//
// # Transactions
//
// Clients that wrap their pipelines in a transaction (redis-py does by default, go-redis
// in TxPipelined) find MULTI, EXEC and DISCARD as in Redis: commands are checked and
// queued, and EXEC executes them in order and answers an array. After a command that
// cannot be queued, EXEC answers EXECABORT, and nothing was counted. A transaction is
// not isolated: other connections' commands may be executed between its own. So WATCH
// is an error. A transaction holds at most 1 MiB of commands.
//
// DEL resets keys of CL.THROTTLE.
//
// # Cost
//
// A connection has one goroutine, and one more while it subscribes. What it has
// received is answered in one write. CHECK, TAKE, PEEK, REFUND, ADD, SUM, RATE and
// CL.THROTTLE do not allocate, but for a key that is new, one of more than a kibibyte,
// and an error. There is no queue: a connection has at most one command under way, so
// MaxConnections bounds what a flood of clients can have the server do at once, and
// those beyond it are told OVERLOAD and closed.
//
// # A command without an answer
//
// When a server ends, or its tokens change, connections are closed between two
// commands, and those that subscribe within a second. A command that was executed was answered before, unless the network or
// the client was too slow for the answer.
package respapi
