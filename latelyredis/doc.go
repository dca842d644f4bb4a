// Package latelyredis keeps the counts and bans of a [ratelimit.Limiter] in Redis or Valkey,
// so that any number of processes share them.
//
// Make a [Store] for the rules, and give it to the limiter, which is then used as any other:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress: []string{"127.0.0.1:6379"}, DisableRetry: true, DisableCache: true, AlwaysPipelining: true,
//		DialCtxFn: latelyredis.Dial, // checks replies, see CheckedConn
//	})
//	...
//	store, err := latelyredis.New(latelyredis.NewConn(client), set, latelyredis.Config{})
//	...
//	defer store.Close()
//	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{Store: store})
//	...
//	if d := limiter.Take(&event); !d.Allowed { ... }
//
// # Guarantees
//
// Decisions are those of the memory store at the same times, which are those of the
// server's clock in microseconds: a test compares the two. Each is made by one script in
// one step. All rules with the same key fields are judged together, and nothing is
// charged when one of them refuses. Rules with other key fields are other subjects: they
// are judged at the same time, and if one refuses, what the others have charged
// is taken back in a second round trip. Until then it counts.
//
// If the server's clock is set back, what was counted later counts as of now, so that
// nothing is freed and nobody is refused for longer than a window and a slot. If it is
// set forward, windows pass as if that time had passed. A replica that takes over may lack
// the last decisions.
//
// A decision is sent once. One whose answer is lost, because the context has ended or the
// connection has failed, may have been counted.
//
// A refusal is remembered until it can change: a flood of a key that is refused takes no round
// trips, except under a rule that bans or that counts what it refuses. What another node has given
// back ends refusals here within half a second.
//
// # Batched
//
// With Config.Batched, a node admits events by itself, up to a part of what Redis has said is left of
// the limit, and tells Redis some milliseconds later. Such a decision takes less than a microsecond. All
// nodes together admit at most an eighth of the limit more than without it; docs/redis.md derives the
// bound. What is near the limit is decided by Redis.
//
// # Bans
//
// The ban of a key is in the record of its rule, and is judged and begun by the script that
// decides. A list in Redis has all bans; the node that begins a ban adds it in a second
// round trip. If that fails, the next node that sees the ban does. Each node has a copy of
// the list, which a goroutine brings up to date every 250 ms until [Store.Close]. It refuses
// what the copy bans without a round trip, also while Redis is away, and after a
// failover writes the bans that were lost again. If a rule of another
// subject bans the key of an event, what a ban of this one has counted is taken back, but
// not a ban that the event began.
//
// # Counters
//
// [Counters] share windows of counts for each key, without limits: each process has all of them in its memory,
// and tells the others every 100 ms what was added.
//
// # Not kept in Redis
//
// Rules with Adapt, and with bans after distinct values, are rejected by [New]. Networks cannot
// be banned. The random part of Ban.Jitter is another for each ban. Counts saturate at 2^53-1. The time
// that a request brings is ignored.
//
// # Hashed fields
//
// Fields that are declared with Hash are counted by digests. All processes with the same prefix, and servers of Lately, use the
// key that [Store.HashKey] returns, unless the middleware is given another. Redis holds the secret that it is derived from:
// without it, a digest does not tell the value.
//
// # Cost
//
// A round trip for each request, or batch, and node. What goroutines ask at the same time is sent
// together, except to a cluster; decisions under the same rules, about up to 16 keys, are one
// script then. A key takes 176 to 340 bytes with all
// slots in use, and 7 bytes for each time that an exact limit keeps. docs/redis.md has
// the names of keys, their contents and a table of failures.
package latelyredis
