// Package latelyredis keeps the counts and bans of a [ratelimit.Limiter] in Redis or Valkey,
// so that any number of processes share them.
//
// Make a [Store] for the rules and pass it to the limiter:
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
// Decisions are the same as in the memory store at the same times; a test compares
// the two. The time is that of the server's clock, in microseconds. Each decision
// is made atomically by one script. All rules with the same key fields are judged
// together, and nothing is charged when one of them refuses. Rules with other key
// fields form other subjects, judged at the same time: if one subject refuses, the
// charges of the others are taken back in a second round trip, and count until
// then.
//
// If the server's clock is set back, later events count at the current time: no count
// is lost, and no key is refused for longer than a window and a slot. If it is set
// forward, windows move on by that time. A replica that takes over may lack the last
// decisions.
//
// A decision is sent once. If its answer is lost, because the context ended or the
// connection failed, it may have been counted.
//
// A refusal is remembered until it can change: a flood of a refused key takes no round trips,
// except under a rule that bans or counts refused events. When another node gives units back,
// refusals here end within half a second.
//
// # Batched
//
// With [Config.Batched], a node allows events by itself, up to a part of the rest of the limit that
// Redis has granted it, and reports them to Redis some milliseconds later. Such a decision takes
// less than a microsecond. All nodes together allow at most an eighth of the limit more than
// without Batched; docs/redis.md derives the bound. Near the limit, Redis decides.
//
// # Bans
//
// The ban of a key is in the record of its rule, and is judged and begun by the script that
// decides. A list in Redis has all bans; the node that begins a ban adds it in a second
// round trip. If that fails, the next node that sees the ban adds it. Each node has a copy
// of the list, which a goroutine updates every 250 ms until [Store.Close]. The node refuses
// keys that are banned in its copy without a round trip, also while Redis is unavailable,
// and writes bans that were lost in a failover again. If a rule of another subject bans the
// key of an event, hits that this subject counted toward a ban are taken back, but a ban
// that the event began stays.
//
// # Counters
//
// [Counters] share windows of counts per key, without limits: each process has all counts in its
// memory, and sends its adds to the others every 100 ms.
//
// # Not kept in Redis
//
// Rules with Adapt, and with bans after distinct values, are rejected by [New]. Networks cannot be
// banned. The random part of Ban.Jitter differs for each ban. Counts saturate at 2^53-1. The time
// of a request is ignored.
//
// # Hashed fields
//
// Fields that are declared with Hash are counted by digests. All processes with the same prefix,
// and servers of Lately, use the key that [Store.HashKey] returns, unless the middleware has
// another. It is derived from a secret in Redis: without that, a digest does not reveal the value.
//
// # Cost
//
// A decision, or a batch, costs one round trip to each node. Requests of several goroutines at
// the same time are sent together, except to a cluster; decisions under the same rules, for up to
// 16 keys, are then one script. A key takes 176 to 340 bytes with all slots in use, and 7 bytes
// for each time that an exact limit keeps. docs/redis.md has the names of keys, their contents
// and a table of failures.
package latelyredis
