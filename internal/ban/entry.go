package ban

import (
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// An entry is the words of a record: what a Table stores of one key under one rule.
//
//	| end, as a keytable.Stamp | start | number of bans, 25 bits, memory in ms | origin | rule |
//
// The words of a new record are zeros: a ban that ended at the earliest time.
type entry []uint64

const (
	entryWords = 5

	maxCount = 1<<25 - 1
)

func (e entry) until() int64  { return keytable.Time(e[0]) }
func (e entry) since() int64  { return int64(e[1]) }
func (e entry) count() uint64 { return e[2] >> memoryBits }
func (e entry) memory() time.Duration {
	return time.Duration(e[2]&(1<<memoryBits-1)) * time.Millisecond
}
func (e entry) origin() origin { return origin(e[3]) }
func (e entry) rule() uint32   { return uint32(e[4]) }

func (e entry) setRule(rule uint32)  { e[4] = uint64(rule) }
func (e entry) setUntil(until int64) { e[0] = keytable.Stamp(until) }

// set makes the ban of e another one.
func (e entry) set(since, until int64, o origin) {
	e.setUntil(until)
	e[1], e[3] = uint64(since), uint64(o)
}

func (e entry) setPast(count uint64, memory time.Duration) {
	e[2] = min(count, maxCount)<<memoryBits | uint64(memory/time.Millisecond)
}

// earlier returns the number of bans so far that are remembered at now.
func (e entry) earlier(now int64) uint64 {
	if e.expires() < now {
		return 0
	}
	return e.count()
}

// expires returns the last time at which the ban is remembered.
func (e entry) expires() int64 {
	if e.until() > math.MaxInt64-int64(e.memory()) {
		return math.MaxInt64
	}
	return e.until() + int64(e.memory())
}
