package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/ban"
)

// A Ban sets when a rule bans a key, and for how long: after After hits (or refusals)
// in Span, the next one is refused and starts a ban of For. After is maxretry - 1 of
// fail2ban.
//
// With Distinct, the After+1st value of Field in Span starts the ban: for example the
// After+1st user that a client tries to log in as. A value counts once, at the last time
// it came. An event without a value counts nothing, nor does a key that is judged without
// an event. Counts are exact, but for two values whose keyed hashes of 64 bits are equal.
// A key with more than two values takes 16 to 32 bytes for each.
//
// Bans of a key can grow, by Factor or along Steps, as with bantime.increment in fail2ban.
// Its formula with the factor 1 is Factor 2; its multipliers are Steps, each multiplied by
// bantime; its bantime.maxtime is Max.
type Ban struct {
	After uint64        // at most 65,535; 0 bans on the first
	Of    Cause         // what is counted: hits, refusals or distinct values
	Field string        // whose distinct values are counted, with Distinct
	Span  time.Duration // whole milliseconds, from 1 ms to 10 years
	For   time.Duration // whole milliseconds, from 1 ms to 10 years; 0 with Steps

	// Factor makes each further ban of a key longer: the k-th lasts
	// For * Factor^(k-1), but no longer than Max. With 0 and 1 all are equally long.
	Factor float64

	// Steps are the lengths of the first ban of a key, of the second, and so on; the
	// last step is the length of all further bans. At most 64, each in the range of
	// For. It replaces For and Factor.
	Steps []time.Duration

	// Max is the longest ban; 0 means 10 years.
	Max time.Duration

	// Jitter makes each ban longer by a random part of it between 0 and Jitter, which is
	// from 0 to 1. Clients that were banned together then do not come back together and
	// cannot predict when. A ban that would be longer than Max lasts between
	// Max / (1+Jitter) and Max. The part depends only on the key, the number of the ban
	// and the seed of the store, so a replay repeats it.
	Jitter float64

	// Extend makes every hit during a ban that the rule began restart the ban: it then
	// lasts as long again from that hit. By default hits during a ban change nothing.
	Extend bool

	// Remember is the time after its end during which a ban counts as an earlier one
	// for Factor and Steps; 0 means 24 hours.
	Remember time.Duration
}

// A Cause is a kind of event that a ban counts. Its String is "hits", "refusals" or
// "distinct values".
type Cause = ban.Cause

const (
	Hits     Cause = iota // every matching event
	Refusals              // every event that a limit of the rule refuses
	Distinct              // every value of Ban.Field, once
)

// policy returns b as package ban has it.
func (b *Ban) policy() *ban.Policy { return (*ban.Policy)(b) }
