package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/store"
)

// Config is how a [Limiter] keeps what it counts. Its zero value is the default:
// this process's memory, with a budget of 256 MiB.
//
// # Budget
//
// Memory never takes more than its budget for keys, counts and bans. When the budget
// is spent, a new key takes the place of other keys of its rule: first of those whose
// windows are empty, then of those that were judged longest ago. A key at half a limit
// or more, and so every key that was just refused, is protected: it is not evicted
// while that is in its windows. Nor is a ban in force: bans have a table of their own,
// with places that only bans by hand take. Where protected keys fill the budget, new
// keys share a sketch, which overcounts and never undercounts: it can refuse what
// should be allowed, and never allows what should be refused. [Limiter.Stats] counts
// all of this.
//
// For each rule that counts it, a key takes 40 bytes and more, and its own length
// above 15, at a load of 60 to 75 %: with one limit of up to 128, 64 bytes with up to
// three times in it, and then 8 to 16 for each time; with one sliding limit above 128,
// some 280 bytes. docs/dev/proofs.md has a table.
type Config struct {
	// Store is the store that processes share, which was made for the same Set; nil
	// means this process's memory. The fields below StoreTimeout are about memory.
	Store store.Store[*Set, BanRecord]

	// StoreTimeout bounds each call of Store, with the wait for a connection. What it has
	// not answered by then is decided as the rules' OnStoreFailure say. 0 means 20 ms.
	StoreTimeout time.Duration

	// Resolution is what times are multiples of, when they were floored to
	// it, as replay does with the seconds of a log. A slot of a sliding
	// window then leaves as soon as its last possible time has; where slots
	// are no wider than Resolution, decisions are those of Exact. 0 means
	// nanoseconds, the most is MaxSpan.
	Resolution time.Duration

	// Budget bounds the memory in bytes. 0 means DefaultBudget, NoBudget that
	// there is no bound. The least depends on the rules; an error says it.
	Budget int64

	// Bans is how many bans there can be, remembered ones included. A
	// sixteenth of them is kept for manual ones. 0 means a million.
	Bans int

	// JitterSeed makes the jitter of bans repeatable. 0 means a random one.
	JitterSeed uint64

	// OnBan, when not nil, is told of each ban that a rule has begun, and
	// each time that Ban.Extend has made one longer: as [BanList.All] lists
	// it. It is not told of bans that are added or imported, and may not be
	// of one that is removed at that moment.
	//
	// It is called before the decision is returned, by the goroutine that
	// decided, with nothing locked: it may call the Limiter, is called by
	// several goroutines at once, and delays the event that it is about. Bans
	// of one key may be told in another order than they began.
	OnBan func(BanRecord)
}

const (
	// DefaultBudget is the Budget by default: 256 MiB.
	DefaultBudget = 256 << 20

	// NoBudget is the Budget of a limiter that may grow without bound and evicts
	// nothing: for logs, of which one key may be judged after another, each in its
	// own order of time.
	NoBudget = -1
)
