package engine

import (
	"fmt"
	"log/slog"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// Config says what an Engine holds. Its zero value is an engine without rules and
// with the default budgets.
type Config struct {
	// Rules is the rules in force at first; nil means none.
	Rules *rules.File

	// Budget bounds the memory of limits and bans in bytes; 0 means
	// [ratelimit.DefaultBudget].
	Budget int64

	// CounterBudget bounds the memory of all counters in bytes; 0 means
	// DefaultCounterBudget. Half of it is shared alike by the counters of the
	// rules file, and half by MaxCounters that are made. A counter that stays as
	// it was over a reload keeps its share, and what it has counted: with n
	// counters of which some came when there were fewer, the shares of the file
	// may add up to 1 + 1/2 + ... + 1/n halves (n = 4: 2.1; n = 10: 2.9). Memory
	// is taken as keys come, and a restart deals the shares anew.
	CounterBudget int64

	// ThrottleBudget bounds the memory of limits that callers bring in bytes; 0
	// means DefaultThrottleBudget.
	ThrottleBudget int64

	// Bans is how many bans there can be, remembered ones included; 0 means a
	// million.
	Bans int

	// EventTime makes the Engine judge by the times of events instead of its own
	// clock: only [Caller.CheckAt] changes its state then. Without it, CheckAt is an error.
	EventTime bool

	// Log is told what happens beside the answers; nil means nobody is.
	Log *slog.Logger
}

const (
	// DefaultCounterBudget is the CounterBudget of an Engine that is not given
	// one: 256 MiB.
	DefaultCounterBudget = 256 << 20

	// DefaultThrottleBudget is the ThrottleBudget by default: 64 MiB.
	DefaultThrottleBudget = 64 << 20

	// MaxKey is the longest value of a key, in bytes. Other values of an event
	// may be longer.
	MaxKey = 1024

	// MaxName is the longest name of a counter, in bytes.
	MaxName = 64

	// MaxCost is the largest cost of an event, and the most that is added to a
	// counter at once.
	MaxCost = 1 << 31

	// MaxCounters is how many counters can be made by adding to them, next to
	// those of the rules file.
	MaxCounters = 32

	// KeySeparator joins the values of a key of several fields where there is
	// room for one string.
	KeySeparator = '\t'
)

func (c *Config) validate() error {
	if c.CounterBudget < 0 || c.CounterBudget > 0 && c.CounterBudget < minCounterBudget {
		return fmt.Errorf("counter budget is %d; allowed is 0 (%d) or from %d", c.CounterBudget, DefaultCounterBudget, minCounterBudget)
	}
	if c.Budget < 0 {
		return fmt.Errorf("budget is %d; allowed is 0 (%d) or a number of bytes", c.Budget, ratelimit.DefaultBudget)
	}
	return nil
}

// minCounterBudget is what MaxCounters empty tables take, and some keys.
const minCounterBudget = 64 << 20
