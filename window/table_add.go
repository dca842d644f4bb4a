package window

import (
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
)

// Add counts n events of key that happen now. It reports whether they were
// counted. If not, the key is new and there is no memory for it, see [TableConfig],
// or it is longer than MaxTableKey; [TableStats] counts these calls as Refused.
//
// Times are as in [Counter.Add]: a goroutine that is delayed counts in the slot
// that the window has reached by then. The table copies key, and keeps no
// reference to it.
func (tb *Table) Add(key string, n uint64) bool {
	tb.mustBeMade()
	hash := tb.in.Hash(key)
	hint := tb.in.Prefetch(hash) // it comes while the clock is read
	t := tb.clock.now()
	absent := false
	if len(tb.windows) == 1 {
		var ok bool
		if ok, absent = tb.addQuick(hint, hash, key, t, n); ok {
			return true
		}
	}
	_, ok := tb.add(hint, &tableAdd{t: t, hash: hash, key: key, n: n, live: true, absent: absent})
	return ok
}

// AddAt counts n events of key that happened at t, in any order of times. It
// reports whether they are counted. If not, they were refused: as in Add, or as
// late, because t is older than all windows as of the table's newest event, or
// as future, see [Window.Ahead]. An event that is too old for some of the
// windows is counted in the others.
//
// AddAt(t, key, 0) counts nothing and holds no new key, but moves the windows on
// to t.
func (tb *Table) AddAt(t time.Time, key string, n uint64) bool {
	_, ok := tb.addAt(t, key, n, false)
	return ok
}

// AddSum counts n events of key that happen now and returns the sum that
// follows, those n included, atomically: if concurrent adds raise the sum past
// a number, exactly one of them returns it. ok is as in Add; if false, the sum
// is 0.
func (tb *Table) AddSum(key string, n uint64) (sum uint64, ok bool) {
	tb.mustBeMade()
	hash := tb.in.Hash(key)
	hint := tb.in.Prefetch(hash)
	return tb.add(hint, &tableAdd{t: tb.clock.now(), hash: hash, key: key, n: n, live: true, wantSum: true})
}

// AddSumAt counts n events of key that happened at t and returns the sum at t
// that follows, in one step; see AddSum. ok is as in AddAt; if false, the sum is
// 0.
func (tb *Table) AddSumAt(t time.Time, key string, n uint64) (sum uint64, ok bool) {
	return tb.addAt(t, key, n, true)
}

// slots is a time in the windows of a table: the slot in each, or skip.
type slots [maxTableWindows]int64

func (tb *Table) addAt(at time.Time, key string, n uint64, wantSum bool) (sum uint64, ok bool) {
	tb.mustBeMade()
	hash := tb.in.Hash(key)
	hint := tb.in.Prefetch(hash)
	t := tb.clock.nanos(at)
	if tb.ahead != nil && tb.isFuture(t) {
		return 0, false
	}
	absent := false
	if len(tb.windows) == 1 && !wantSum {
		if ok, absent = tb.addQuick(hint, hash, key, t, n); ok {
			return 0, true
		}
	}
	return tb.add(hint, &tableAdd{t: t, hash: hash, key: key, n: n, wantSum: wantSum, absent: absent})
}

// addQuick is add for the usual case: one window, and a key that is held or for which
// there is memory. If that is not so, ok is false and it has counted nothing; absent
// is true if the key is not held.
//
// It moves the window on before the record is locked, so another may have counted in
// a newer slot meanwhile. That does no harm while the record still has the slot of t,
// which w.add looks at.
func (tb *Table) addQuick(hint keytable.Hint, hash uint64, key string, t int64, n uint64) (ok, absent bool) {
	w := &tb.windows[0]
	slot, newest := w.reach(t)
	if slot <= newest-w.slots || n == 0 || len(key) > MaxTableKey {
		return false, false
	}
	r, state := tb.in.LockOrAddAt(hint, hash, key)
	if state == keytable.Absent {
		return false, true
	}
	rel := slot - r.Base()[0]
	ok = uint64(rel) <= maxRel && !r.Flag() && w.add(r.Words(), rel, n)
	r.Unlock()
	return ok, false
}

// A tableAdd is an add on its way: n events of key at t, live or not, and
// whether the caller wants the sum.
type tableAdd struct {
	t             int64
	hash          uint64
	key           string
	n             uint64
	live, wantSum bool
	absent        bool // the key was not held a moment ago
}

func (tb *Table) add(hint keytable.Hint, a *tableAdd) (sum uint64, ok bool) {
	var at slots
	r, held, ok := tb.hold(hint, a, &at)
	if !held {
		return 0, ok
	}
	defer r.Unlock()
	tb.countIn(r, &at, a.n)
	if !a.wantSum {
		return 0, true
	}
	i := len(tb.windows) - 1
	w := &tb.windows[i]
	if at[i] == skip {
		at[i] = ring.FloorDiv(a.t, w.width)
	}
	return tb.clippedSum(w, r, at[i]-w.slots+1, at[i]), true
}

// hold locks the record that a counts in, a new one if needed, and sets at to the slots.
// If held is false, there is no record, and ok is the result of the add.
//
// The windows are moved on with the record locked, so it is never newer than
// they are, and an event in a window is also in the windows of its key.
func (tb *Table) hold(hint keytable.Hint, a *tableAdd, at *slots) (r keytable.Record, held, ok bool) {
	state := keytable.Absent
	if !a.absent {
		r, state = tb.in.LockAt(hint, a.hash, a.key)
	}
	for {
		held = state != keytable.Absent
		inTime := tb.reach(at, a.t, a.live)
		switch {
		case held && inTime && tb.based(at, r.Base()):
			return r, true, true
		case held:
			r.Unlock()
		}
		switch {
		case !inTime:
			tb.late.Add(1)
			return r, false, false
		case held:
			tb.in.Rebase(a.hash) // the record may move, or go as expired
			r, state = tb.in.Lock(a.hash, a.key)
		case a.n == 0:
			return r, false, true
		default:
			if r, state = tb.in.Add(a.hash, a.key); state == keytable.NoMemory {
				return r, false, false
			}
		}
	}
}

// based reports whether the slots can be given relative to that base.
func (tb *Table) based(at *slots, base *[keytable.MaxBases]int64) bool {
	for i := range tb.windows {
		if at[i] != skip && (at[i] < base[i] || at[i]-base[i] > maxRel) {
			return false
		}
	}
	return true
}

// reach returns the slots of t, and moves the windows on to it. It reports false
// if t has left all windows.
func (tb *Table) reach(at *slots, t int64, live bool) (ok bool) {
	for i := range tb.windows {
		w := &tb.windows[i]
		slot, newest := w.reach(t)
		switch {
		case live && slot <= newest-w.slots:
			slot = newest
		case slot < newest-w.slots:
			at[i] = skip
			continue
		}
		at[i] = slot
		ok = true
	}
	return ok
}

// countIn counts n in r, in the windows that do not skip it.
func (tb *Table) countIn(r keytable.Record, at *slots, n uint64) {
	saturated := false
	for i := range tb.windows {
		w := &tb.windows[i]
		if at[i] == skip {
			continue
		}
		rel := at[i] - r.Base()[i]
		switch {
		case !r.Flag() && w.add(r.Words(), rel, n):
		case !r.Flag() && !tb.widen(r):
			// There is no memory for a full record: the slot is left at the
			// most it can hold.
			w.add(r.Words(), rel, w.most()-tb.sum(w, r, at[i], at[i]))
			saturated = true
		case !w.addFull(tb.full.At(uint32(r.Words()[0])), at[i], n):
			saturated = true
		}
	}
	if saturated {
		tb.saturated.Add(1)
	}
}

// widen makes r a full record, and reports false if there is no memory for it.
func (tb *Table) widen(r keytable.Record) bool {
	block, ok := tb.full.Alloc()
	if !ok {
		return false
	}
	full, words := tb.full.At(block), r.Words()
	for i := range tb.windows {
		w := &tb.windows[i]
		stamp := tb.stamp(w, r)
		full[w.fullAt] = uint64(stamp)
		for s := stamp - w.slots; s <= stamp; s++ {
			full[w.fullAt+1+w.fullPos(s)] = tb.sum(w, r, s, s)
		}
	}
	words[0] = uint64(block)
	r.SetFlag()
	return true
}

// isFuture reports whether an event at t must be refused as future.
func (tb *Table) isFuture(t int64) bool {
	w := tb.ahead
	newest := w.newest.Load()
	return newest != w.before() && tb.guard.refuses(t, (newest+1)*w.width, w.window.Ahead, w.window.Span)
}
