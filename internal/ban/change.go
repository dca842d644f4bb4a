package ban

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// A Result is what Add did with a ban.
type Result uint8

// The results.
const (
	Added Result = iota
	Kept         // a ban that ends later was there
	Full         // there was no memory
)

// Start begins the next ban of key under rule, of the length that p gives, and returns when it ends. If a
// ban that was added meanwhile ends later, it is kept. ok is false if there is no memory;
// no ban has begun then.
func (t *Table) Start(rule uint32, hash uint64, key []byte, p *Policy, now int64, seed uint64) (until int64, ok bool) {
	defer t.change(hash).Unlock()
	r, ok := t.open(false, rule, hash, key, now)
	if !ok {
		t.refused.Add(1)
		return 0, false
	}
	defer r.Unlock()
	e := entry(r.Words())
	earlier := e.earlier(now)
	until = now + int64(p.jittered(earlier, seed, key))
	e.setPast(earlier+1, p.Remembered())
	if held := e.until(); now < held && (until < held || until == held && !e.origin().byRule()) {
		return held, true
	}
	t.texts.release(e.origin())
	e.set(now, until, ruleOrigin(p))
	return until, true
}

// Extend restarts the ban that holds for key at now, if a rule began it and p.Extend is
// set. It returns when the ban ends; ok is false if none holds.
func (t *Table) Extend(rule uint32, hash uint64, key []byte, p *Policy, now int64, seed uint64) (until int64, ok bool) {
	defer t.change(hash).Unlock()
	r, in := t.find(identity(rule, hash), key)
	if in == nil {
		return 0, false
	}
	defer r.Unlock()
	e := entry(r.Words())
	if e.until() <= now {
		return 0, false
	}
	if p.Extend && e.origin().byRule() {
		e.setUntil(max(e.until(), now+int64(p.jittered(max(e.count(), 1)-1, seed, key))))
	}
	return e.until(), true
}

// Add adds b, which may have ended, at now. It is remembered for b.Memory after its end. A ban
// of the key that ends later is kept. One by hand that ends at the same time gets the reason
// and the source of b if it has neither. Only a ban that is not by a rule may use the reserve.
func (t *Table) Add(hash uint64, b *Ban, now int64) Result {
	defer t.change(hash).Unlock()
	o, ok := b.counted, true
	if o == 0 {
		if o, ok = t.textOrigin(b); !ok {
			return Full
		}
	}
	r, ok := t.open(!b.byRule(), b.Rule, hash, b.Key, now)
	if !ok {
		t.texts.release(o)
		return Full
	}
	defer r.Unlock()
	e := entry(r.Words())
	e.setPast(max(e.earlier(now), b.Count), max(e.memory(), b.Memory))
	if held := e.until(); held > b.Until || held == b.Until && (b.byRule() || !e.origin().byRule() && !(e.origin().isPlain() && !o.isPlain())) {
		t.texts.release(o)
		return Kept
	}
	t.texts.release(e.origin())
	e.set(b.Since, b.Until, o)
	return Added
}

// textOrigin returns the origin of b, with its reason and source in t.texts. ok is false if
// there is no memory for them.
func (t *Table) textOrigin(b *Ban) (o origin, ok bool) {
	x := text{b.Reason, b.storedSource()}
	id, ok := t.texts.use(x, t.shared.budget)
	if !ok && !b.byRule() {
		id, ok = t.texts.use(x, t.reserve.budget)
	}
	if o = origin(originText | uint64(id)); b.byRule() {
		o |= originRule
	}
	return o, ok
}

// Remove ends the ban of key under rule and deletes those before it. It reports whether
// one held at now.
func (t *Table) Remove(rule uint32, hash uint64, key []byte, now int64) bool {
	defer t.change(hash).Unlock()
	id := identity(rule, hash)
	r, in := t.find(id, key)
	if in == nil {
		return false
	}
	held := now < entry(r.Words()).until()
	r.Unlock()
	in.Remove(id, keytable.Text(key))
	return held
}

// KeepRules removes the bans of all rules but those for which keep returns true. One call
// must be over before the next.
func (t *Table) KeepRules(keep func(rule uint32) bool) {
	t.dropped.Store(&keep)
	for in := range t.tables {
		in.Expire()
	}
	t.dropped.Store(nil)
}

// change returns the lock, which it has taken, under which bans of the keys with that hash
// change.
func (t *Table) change(hash uint64) *sync.Mutex {
	m := &t.changes[hash%uint64(len(t.changes))]
	m.Lock()
	return m
}

// open returns the record of a key, locked, and makes one if there is none; ok is false if
// there is no memory. manual is whether the reserve may be used.
//
// REQUIRES: t.change.
func (t *Table) open(manual bool, rule uint32, hash uint64, key []byte, now int64) (r keytable.Record, ok bool) {
	keytable.Raise(&t.now, now)
	id := identity(rule, hash)
	r, in := t.find(id, key)
	if in != nil {
		return r, true
	}
	if r, ok = t.add(&t.shared, id, key, now); !ok && manual {
		r, ok = t.add(&t.reserve, id, key, now)
	}
	if ok {
		entry(r.Words()).setRule(rule)
		t.Of(rule).Add(1)
	}
	return r, ok
}

// add makes a record for a key in p. If there are as many bans as there may be, it drops some.
func (t *Table) add(p *part, id uint64, key []byte, now int64) (r keytable.Record, ok bool) {
	in := t.tableOf(p)
	if in == nil || !p.takePlace() && !(p.drop(in, id, now) && p.takePlace()) {
		return r, false
	}
	r, state := in.Add(id, keytable.Text(key))
	if state == keytable.NoMemory && p.drop(in, id, now) {
		r, state = in.Add(id, keytable.Text(key))
	}
	if state != keytable.Added {
		p.bans.Add(-1)
	}
	return r, state == keytable.Added
}

// tableOf returns the table of p, nil if there is no memory for one.
func (t *Table) tableOf(p *part) *keytable.Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in := p.table.Load(); in != nil || p.most == 0 {
		return in
	}
	in, err := keytable.New(maphash.MakeSeed(), keytable.Config{Words: entryWords, Budget: p.budget, Policy: policy{t: t, p: p}})
	if err != nil {
		return nil
	}
	p.table.Store(in)
	return in
}

// dropEvery is how long after a search for bans that can be dropped, which found none, the
// next one is: a search looks at some thousand bans.
const dropEvery = 10 * time.Millisecond

// drop drops some bans that have ended, and reports whether it found any.
func (p *part) drop(in *keytable.Table, id uint64, now int64) bool {
	if uint64(now)-uint64(p.searched.Load()) < uint64(dropEvery) {
		return false
	}
	ok := in.Evict(id)
	if !ok {
		p.searched.Store(now)
	}
	return ok
}

// takePlace counts one more ban, unless there are as many as there may be.
func (p *part) takePlace() bool {
	for {
		n := p.bans.Load()
		if n >= p.most {
			return false
		}
		if p.bans.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
