// Package integer keeps whole numbers by key until a time: what INCREX of Redis 8.8 adds to.
//
// One call adds to the number of a key within bounds, so that it is a limit of a fixed window
// whose caller brings the limit along. A [Table] does not allocate for a call and has no
// goroutine. Its memory is bounded, and no key is evicted before it has ended.
package integer

import (
	"errors"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// The errors of [Table.Add]. Nothing has changed then.
var (
	ErrNoEnd = errors.New("the key is not there: must be given an end by EX, PX, EXAT or PXAT")
	ErrFull  = errors.New("no memory for another key")
	ErrRange = errors.New("what would be added is not a number of 64 bits: must be from -9223372036854775808 to 9223372036854775807")
)

// A Table keeps numbers by key. A key takes 40 bytes, and its own length above 15, at a load
// of 60 to 83 %. When the budget is spent, keys that have ended make way for new ones; none is
// evicted before, as it would begin again at 0. It is safe for concurrent use. Make one with
// [New].
type Table struct {
	budget *keytable.Budget
	table  *keytable.Table
	ends   ends
}

// An Increment says what is added, and within which bounds: the sum must be from Least to
// Most. If it is not, nothing changes; or, with Saturate, the number is the nearer of the two.
type Increment struct {
	By, Least, Most int64
	Saturate        bool

	// The key ends so long from now, or, if For is 0, at Until. If that is zero too, it ends
	// when it would have ended; a key that is not there must be given an end.
	For   time.Duration
	Until time.Time

	// OnlyNew sets the end of a key that is not there, and keeps that of one that is.
	OnlyNew bool
}

// maxSpan is how far from the ends of int64 the times of keys stay.
const maxSpan = 10 * 365 * 24 * time.Hour

// New returns an empty Table with a budget in bytes. The error says what the least budget is.
func New(budget int64) (*Table, error) {
	t := &Table{budget: keytable.NewBudget(budget)}
	t.ends.now.Store(math.MinInt64)
	var err error
	t.table, err = keytable.New(maphash.MakeSeed(), keytable.Config{Words: 2, KeyWords: 2, Budget: t.budget, RefuseNew: true, Policy: &t.ends})
	return t, err
}

// Add adds to the number of key at a time, and returns the number and what was added: 0 if
// the sum is beyond a bound. A key that is not there has the number 0, and is made unless the
// sum is beyond a bound.
func (t *Table) Add(now time.Time, key string, inc *Increment) (value, added int64, err error) {
	at, hash := keytable.Nanos(now, maxSpan), t.table.Hash(key)
	r, state := t.table.Lock(hash, key)
	if state == keytable.Absent {
		if _, ok := inc.sum(0); !ok {
			return 0, 0, nil
		}
		if inc.end(at) == 0 {
			return 0, 0, ErrNoEnd
		}
		keytable.Raise(&t.ends.now, at)
		if r, state = t.table.Add(hash, key); state == keytable.Added {
			at = max(at, t.ends.now.Load()) // the key may have been evicted at that time
		}
	}
	if state == keytable.NoMemory {
		return 0, 0, ErrFull
	}
	defer r.Unlock()
	return inc.apply(at, r.Words())
}

// apply adds to the number in the words of a record.
func (inc *Increment) apply(now int64, w []uint64) (value, added int64, err error) {
	was, end := int64(0), inc.end(now)
	live := keytable.Time(w[0]) > now
	if live {
		was = int64(w[1])
	}
	value, ok := inc.sum(was)
	added = value - was
	switch {
	case !ok:
		return was, 0, nil
	case !live && end == 0:
		return was, 0, ErrNoEnd
	case (added > 0) != (value > was):
		return was, 0, ErrRange
	}
	w[1] = uint64(value)
	if end != 0 && !(live && inc.OnlyNew) {
		w[0] = keytable.Stamp(end)
	}
	return value, added, nil
}

// sum returns the number that comes after was, and whether there is one.
func (inc *Increment) sum(was int64) (value int64, ok bool) {
	value = was + inc.By
	switch beyond := (was^value)&(inc.By^value) < 0; { // of 64 bits
	case beyond && inc.By > 0 || !beyond && value > inc.Most:
		return inc.Most, inc.Saturate
	case beyond || value < inc.Least:
		return inc.Least, inc.Saturate
	}
	return value, true
}

// end returns when a key ends, or 0 if inc does not say it.
func (inc *Increment) end(now int64) int64 {
	switch {
	case inc.For != 0:
		return now + int64(inc.For)
	case !inc.Until.IsZero():
		return keytable.Nanos(inc.Until, maxSpan)
	}
	return 0
}

// Left returns after how long a key ends, or 0 if it is not there.
func (t *Table) Left(now time.Time, key string) time.Duration {
	r, state := t.table.Lock(t.table.Hash(key), key)
	if state != keytable.Found {
		return 0
	}
	defer r.Unlock()
	return time.Duration(max(keytable.Time(r.Words()[0])-keytable.Nanos(now, maxSpan), 0))
}

// Remove deletes a key, and reports whether it was there.
func (t *Table) Remove(now time.Time, key string) bool {
	there := t.Left(now, key) > 0
	return t.table.Remove(t.table.Hash(key), key) && there
}

// Stats says how many keys a [Table] has, and what they take.
type Stats struct {
	Keys   int
	Bytes  int64 // taken from the budget
	Budget int64
	Full   uint64 // calls of Add for which no memory was left
}

// Stats returns these numbers since t was made. Keys that have ended are among them until
// they are evicted.
func (t *Table) Stats() Stats {
	return Stats{t.table.Len(), t.budget.Used(), t.budget.Limit(), t.table.Stats().Refused}
}

// ends owns the records. The words of one are
//
//	0  when the key ends, as keytable.Stamp has it
//	1  its number
type ends struct {
	keytable.Plain

	// now is the newest time at which a key was added: one that has ended then may be
	// evicted, so a key that is added does not begin before.
	now atomic.Int64
}

// Expired reports whether the key has ended.
func (e *ends) Expired(r keytable.Record) bool {
	return keytable.Time(r.Words()[0]) <= e.now.Load()
}

// Weight is not asked for: no key is evicted before it has ended.
func (e *ends) Weight(keytable.Record) uint64 { return keytable.Protected }
