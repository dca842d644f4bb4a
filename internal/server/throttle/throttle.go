// Package throttle limits keys by limits that come with each call, as CL.THROTTLE does.
package throttle

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// A Limiter limits keys by limits that each call brings: a count, a period and a burst. It is
// for callers that keep their limits elsewhere, and returns what Redis' CL.THROTTLE does
// (redis-cell, B. Leach, after GCRA of ATM Forum, Traffic Management 4.0, 1996). If the limit
// is known in advance, use a [ratelimit.Rule], which can be replayed, changed and listed.
//
// A key is a bucket that drains count in a period, holds burst+1, and allows
// what fits: at most burst+1 at once, and in any window of a period at most
// count and burst more. Its level is kept exactly: nothing drifts, whatever count
// and period. A call with other limits than the one before finds the bucket as it
// is, and takes it for its own: it will be empty at the same time as before.
//
// A Limiter does not allocate for a decision and has no goroutine. A key takes 40
// bytes, and its own length above 15, at a load of 60 to 83 %. An empty
// bucket is evicted when memory is needed. When the budget is spent, the buckets that
// would be empty first are evicted, but none that was limited or half full: a new key
// for which there is no memory is limited. So a flood of keys makes it refuse too
// much, and frees no key that was refused. [Limiter.Stats] counts that.
//
// It is safe for concurrent use. The zero Limiter is not usable; call New.
type Limiter struct {
	start  time.Time // with its monotonic reading
	base   int64     // start as a time of events
	budget *keytable.Budget
	table  *keytable.Table
	levels levels
}

// defaultBudget is the budget of a Limiter by default, for a million keys and more.
const defaultBudget = 64 << 20

// maxCount is the largest count, and the largest burst, of a Limiter.
const maxCount = limit.MaxN - 1

// New returns an empty Limiter with a budget in bytes; 0 means 64 MiB. The
// error says what the least budget is.
func New(budget int64) (*Limiter, error) {
	t := &Limiter{start: time.Now(), budget: keytable.NewBudget(cmp.Or(budget, defaultBudget))}
	t.base = keytable.Nanos(t.start, limit.MaxSpan)
	t.levels.now.Store(math.MinInt64)
	t.levels.expired.Store(math.MinInt64)
	var err error
	t.table, err = keytable.New(maphash.MakeSeed(), keytable.Config{
		Words: limit.BucketWords, Budget: t.budget, Policy: &t.levels,
	})
	return t, err
}

// Take requests quantity units of key now, under a limit of count per period plus
// burst: 15, 30, a minute and 1 is what CL.THROTTLE key 15 30 60 1 means. A quantity
// of 0 only looks and counts nothing. One above burst+1 is always refused.
//
// Of the decision, Allowed, Limit, which is burst+1, Remaining, RetryAfter and
// ResetAfter are set.
//
// The error names what is out of range: count is from 1 to limit.MaxN-1, burst at
// most that, period whole milliseconds from 1 ms to limit.MaxSpan, and burst+1 at that
// pace take no longer than limit.MaxSpan to drain. A key has at most 1,024 bytes.
func (t *Limiter) Take(key string, burst, count uint64, period time.Duration, quantity uint64) (ratelimit.Decision, error) {
	return t.take(t.base+int64(time.Since(t.start)), key, burst, count, period, quantity)
}

func (t *Limiter) take(now int64, key string, burst, count uint64, period time.Duration, quantity uint64) (d ratelimit.Decision, err error) {
	if err = validate(burst, count, period); err != nil {
		return d, err
	}
	if len(key) > keytable.MaxKey {
		return d, fmt.Errorf("key: %d bytes: must be at most %d", len(key), keytable.MaxKey)
	}
	d.Limit = burst + 1
	bucket, ok := limit.NewBucket(count, d.Limit, period)
	if !ok {
		return d, fmt.Errorf("burst: %d: at %d in %v, one more than that takes longer than %v to drain: must be less", burst, count, period, limit.MaxSpan)
	}
	hash := t.table.Hash(key)
	r, state := t.table.Lock(hash, key)
	if state == keytable.Absent && quantity > 0 && quantity <= d.Limit { // else there is nothing to be kept
		keytable.Raise(&t.levels.now, now)
		r, state = t.table.Add(hash, key)
	}
	var w [limit.BucketWords]uint64
	switch state {
	case keytable.Found:
		was := levelOf(r.Words(), &w)
		bucket.Scale(w[:], was)
	case keytable.Added, keytable.Absent:
		now = max(now, t.levels.expired.Load())
	default:
		waitFor(&d, &bucket, now, quantity)
		return d, nil
	}
	decide(&d, &bucket, &w, now, quantity)
	if state == keytable.Absent {
		return d, nil
	}
	if !d.Allowed || d.Remaining <= d.Limit/2 {
		r.SetFlag()
	}
	if d.Allowed && quantity > 0 {
		setLevel(r.Words(), &w, count)
	}
	r.Unlock()
	return d, nil
}

// decide fills in d for the bucket of the words w, and charges it if quantity fits.
func decide(d *ratelimit.Decision, bucket *limit.Bucket, w *[limit.BucketWords]uint64, now int64, quantity uint64) {
	used := bucket.Used(w[:], now)
	d.Remaining = d.Limit - min(used, d.Limit)
	// As with CL.THROTTLE, a call for nothing is limited by a bucket that is fuller
	// than its limit.
	d.Allowed = quantity <= d.Remaining && (quantity > 0 || used <= d.Limit)
	switch {
	case d.Allowed:
		bucket.Charge(w[:], now, quantity)
		d.Remaining -= quantity
	case quantity <= d.Limit:
		d.RetryAfter = bucket.Until(w[:], now, d.Limit-quantity)
	default:
		d.RetryAfter = ratelimit.Never
	}
	d.ResetAfter = bucket.Until(w[:], now, 0)
}

// waitFor fills in d for a key for which there is no memory: to wait for as long as the
// quantity takes to drain.
func waitFor(d *ratelimit.Decision, bucket *limit.Bucket, now int64, quantity uint64) {
	var w [limit.BucketWords]uint64
	bucket.Charge(w[:], now, quantity)
	d.RetryAfter = bucket.Until(w[:], now, 0)
	d.ResetAfter = d.RetryAfter
}

// validate returns an error that names what is out of range.
func validate(burst, count uint64, period time.Duration) error {
	switch {
	case count < 1 || count > maxCount:
		return fmt.Errorf("count: %d: must be 1 to %d", count, uint64(maxCount))
	case burst > maxCount:
		return fmt.Errorf("burst: %d: must be 0 to %d", burst, uint64(maxCount))
	}
	if limit.ValidSpan(period) {
		return nil
	}
	return fmt.Errorf("period: %v: %s", period, limit.MustSpan)
}

// Stats returns what t holds, and what became of its keys since it was made: Bytes and
// Budget, and Keys, Expired, Evicted and Full of one RuleStats.
func (t *Limiter) Stats() ratelimit.Stats {
	gone := t.table.Stats()
	keys := ratelimit.RuleStats{Keys: t.table.Len(), Expired: gone.Expired, Evicted: gone.Evicted, Full: gone.Refused}
	return ratelimit.Stats{Rules: []ratelimit.RuleStats{keys}, Bytes: t.budget.Used(), Budget: t.budget.Limit()}
}

// Remove deletes a key, so that its bucket is empty. It reports whether there was
// one.
func (t *Limiter) Remove(key string) bool { return t.table.Remove(t.table.Hash(key), key) }

// levels owns the records of a Limiter. The words of one are
//
//	0  the time at which the bucket will be empty, as keytable.Stamp has it
//	1  the count of the limit that was charged last, 32 bits | the rest, in so many
//	   parts of a nanosecond, 32 bits
//
// The flag says that the key was limited, or half full, since it is known.
type levels struct {
	keytable.Plain

	// now is the newest time at which a key was added: a bucket that is empty then
	// may be evicted.
	now atomic.Int64

	// expired is the newest time at which one was. A key that is added is judged at
	// expired at the earliest, as in package ratelimit.
	expired atomic.Int64
}

const levelCountShift = 32

// levelOf returns the words of a record as those of a bucket, and the count that
// their rest is in parts of.
func levelOf(r []uint64, w *[limit.BucketWords]uint64) (count uint64) {
	w[0], w[1] = r[0], r[1]&(1<<levelCountShift-1)
	return r[1] >> levelCountShift
}

func setLevel(r []uint64, w *[limit.BucketWords]uint64, count uint64) {
	r[0], r[1] = w[0], count<<levelCountShift|w[1]
}

// Expired reports whether the bucket is empty.
func (l *levels) Expired(r keytable.Record) bool {
	now := l.now.Load()
	if empty, rest := r.Words()[0], r.Words()[1]&(1<<levelCountShift-1); keytable.Time(empty) > now || keytable.Time(empty) == now && rest > 0 {
		return false
	}
	keytable.Raise(&l.expired, now)
	return true
}

// Weight returns what is evicted first: what will be empty first.
func (l *levels) Weight(r keytable.Record) uint64 {
	if r.Flag() {
		return keytable.Protected
	}
	return min(r.Words()[0], math.MaxUint64-1)
}

// An entry of an exported chunk is a key, how long after the chunk was written its bucket
// will be empty, the count that was charged last, the rest, and whether the key was
// limited or half full.

// ExportAt yields the buckets of all keys that are not empty at now, for
// [Limiter.ImportAt]. It is as [ratelimit.Limiter.ExportAt] in all: chunks of some 64 KiB, each
// valid until the loop goes on; decisions go on meanwhile, and a key is of one
// moment.
func (t *Limiter) ExportAt(now time.Time) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		written := keytable.Nanos(now, limit.MaxSpan)
		w := snapshot.NewWriter(snapshot.Throttle, written, yield)
		t.table.Export(w, func(key []byte, r keytable.Record) { w.Buf = appendEntry(w.Buf, key, r, written) })
	}
}

// appendEntry appends an entry, unless the bucket is empty.
func appendEntry(dst, key []byte, r keytable.Record, now int64) []byte {
	var w [limit.BucketWords]uint64
	count := levelOf(r.Words(), &w)
	empty := keytable.Time(w[0])
	if count == 0 || empty < now {
		return dst
	}
	dst = snapshot.AppendBytes(dst, key)
	dst = binary.AppendUvarint(dst, uint64(empty-now))
	dst = binary.AppendUvarint(dst, count)
	dst = binary.AppendUvarint(dst, w[1])
	return snapshot.AppendBool(dst, r.Flag())
}

// ImportAt restores what a chunk of [Limiter.ExportAt] has. From now on decisions are
// those that would have been made without a restart; of the numbers of [window.Imported],
// Bans and Unknown stay 0. If the clock was set back since the export, each bucket
// has as long to drain as it had then. A key that is known already stays as it is.
// The error says what is wrong with the chunk; what came before that in it has
// been restored.
func (t *Limiter) ImportAt(now time.Time, chunk []byte) (done window.Imported, err error) {
	_, r, written, err := snapshot.Open(chunk, snapshot.Throttle)
	if err == nil && !snapshot.ValidTime(written, int64(limit.MaxSpan)) {
		err = errors.New("chunk is damaged in its header")
	}
	if err != nil {
		return done, fmt.Errorf("throttle: %w", err)
	}
	at := keytable.Nanos(now, limit.MaxSpan)
	keytable.Raise(&t.levels.now, at)
	damaged := keytable.Import(t.table, r, make([]entry, importAhead), func(e *entry) bool {
		empty := min(written, at) + int64(r.UpTo(uint64(2*limit.MaxSpan)))
		if e.count = r.UpTo(maxCount); e.count == 0 {
			r.Fail()
		}
		e.words = [...]uint64{keytable.Stamp(empty), r.UpTo(max(e.count, 1) - 1)}
		e.flag = r.UpTo(1) == 1
		if empty < at && !r.Failed() {
			done.Expired++
		}
		return empty >= at
	}, func(hash uint64, key string, e *entry) { t.restore(hash, key, e, &done) })
	if damaged >= 0 {
		err = fmt.Errorf("throttle: chunk is damaged after %d of %d bytes", damaged, len(chunk))
	}
	return done, err
}

// importAhead is how many entries are read before the first of them is restored.
const importAhead = 4

// An entry is what was read of a key.
type entry struct {
	words [limit.BucketWords]uint64
	count uint64
	flag  bool
}

// restore adds a key that is not known.
func (t *Limiter) restore(hash uint64, key string, e *entry, done *window.Imported) {
	r, state := t.table.LockOrAdd(hash, key)
	switch state {
	case keytable.NoMemory:
		done.Refused++
		return
	case keytable.Found:
		done.Kept++
	default:
		done.Keys++
		setLevel(r.Words(), &e.words, e.count)
		if e.flag {
			r.SetFlag()
		}
	}
	r.Unlock()
}
