package engine

import (
	"log/slog"
	"net"
	"time"

	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// Config has the settings of an Engine. Its zero value is an engine without rules and
// with the default budgets.
type Config struct {
	// Rules is the rules file; nil means no rules.
	Rules *rules.File

	// Budget bounds the memory of limits and bans in bytes; 0 means
	// that of [ratelimit.Config].
	Budget int64

	// CounterBudget bounds the memory of all counters in bytes; see [counters.Config].
	CounterBudget int64

	// CallerBudget bounds the memory of the limits of Session.Throttle, in bytes; 0 means 64 MiB.
	CallerBudget int64

	// Settled bounds the ids that are remembered as settled or reported until their time is over, at [reservations.Bytes] each; 0
	// means a million. There are none where servers share Store.
	Settled int

	// HotBudget bounds the memory of all hot rules in bytes; 0 means
	// 64 MiB. A sixteenth is for the list of the keys that are hot. The
	// rules share the rest equally; rules that do not change in a reload keep their
	// share, as counters do.
	HotBudget int64

	// KeepEvents bounds the memory of the events that are kept for KeptEvents, in bytes; 0
	// means that none are.
	KeepEvents int64

	// Bans bounds the number of bans, remembered ones included; 0 means a million.
	Bans int

	// Geo sets the fields country and asn of events that have none, if a rule uses them; nil means that rules must not.
	Geo *geo.DB

	// Resolver is asked about clients that may be crawlers, if the rules allow crawlers; nil means the servers of the system.
	Resolver *net.Resolver

	// Store returns the store of limits and bans that is reached by a network, for the rules
	// that the Engine begins with. The store calls onBan for each ban that a rule has begun, and for each
	// that was added by hand at another server; it calls onUnban for each that was ended by hand there.
	// nil means this process's memory.
	Store func(set *ratelimit.Set, onBan func(ratelimit.BanRecord), onUnban func(rule string, key []string)) (store.Store[*ratelimit.Set, ratelimit.BanRecord], error)

	// Counters returns the counters that servers share. They call unknown with the name of each
	// counter that another server has. nil means that counters are of this process only.
	Counters func(unknown func(name string)) (*latelyredis.Counters, error)

	// Once remembers these names until these times in the store that servers share, and reports which of them it has had
	// before. What the store does not answer is false. A nil Once means that there is no such store.
	Once func(names []string, ends []time.Time) (before []bool)

	// StoreTimeout bounds each call of Store; 0 means 20 ms.
	StoreTimeout time.Duration

	// Log receives bans and warnings; nil discards them.
	Log *slog.Logger
}

// MaxCost is the largest cost of an event, and the most that is added to a
// counter at once.
const MaxCost = 1 << 31
