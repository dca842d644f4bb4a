package ban

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// All yields the bans that hold at now, by end, rule and key. No lock is held while the
// loop's body runs: a ban that begins or ends meanwhile may be left out, but each is whole.
// The cost is a copy of each ban and a sort.
func (t *Table) All(now int64) iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var bans []Ban
		var keys []byte
		for key, r := range t.records {
			if e := entry(r.Words()); now < e.until() {
				bans, keys = t.appendBan(bans, keys, key, e)
			}
		}
		slices.SortFunc(bans, func(a, b Ban) int { return cmp.Or(cmp.Compare(a.Until, b.Until), a.compare(&b)) })
		for i := range bans {
			if bans[i].describe(); !yield(bans[i]) {
				return
			}
		}
	}
}

// Saved yields all bans, those that are remembered included, in no order. No lock is held
// while the loop's body runs. A ban that begins meanwhile may be left out.
func (t *Table) Saved() iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var bans []Ban
		var keys []byte
		for in := range t.tables {
			for group := range in.Groups() {
				bans, keys = bans[:0], keys[:0]
				for key, r := range group {
					bans, keys = t.appendBan(bans, keys, key, r.Words())
				}
				for _, b := range bans {
					if b.describe(); !yield(b) {
						return
					}
				}
			}
		}
	}
}

// records yields the key and the record of each ban, locked. The loop's body must not use
// t.
func (t *Table) records(yield func(key []byte, r keytable.Record) bool) {
	for in := range t.tables {
		for key, r := range in.All() {
			if !yield(key, r) {
				return
			}
		}
	}
}

// appendBan appends the ban of an entry, with a copy of its key in keys.
func (t *Table) appendBan(bans []Ban, keys, key []byte, e entry) ([]Ban, []byte) {
	keys = append(keys, key...)
	b := t.ban(keys[len(keys)-len(key):len(keys):len(keys)], e)
	return append(bans, b), keys
}

// ban returns the newest ban of an entry, which describe completes.
func (t *Table) ban(key []byte, e entry) Ban {
	b := Ban{Rule: e.rule(), Key: key, Since: e.since(), Until: e.until(), Count: e.count(), Memory: e.memory(), Source: SourceManual}
	o := e.origin()
	if o.byRule() {
		b.Source = SourceRule
	}
	if _, ok := o.counted(); ok {
		b.counted = o
		return b
	}
	x := t.texts.of(o)
	b.Reason, b.Source = x.reason, cmp.Or(x.source, b.Source)
	return b
}

// describe says in words why a rule began b.
func (b *Ban) describe() {
	if b.counted != 0 {
		b.Reason = b.counted.reason()
	}
}

// compare orders by rule and key.
func (b *Ban) compare(o *Ban) int {
	return cmp.Or(cmp.Compare(b.Rule, o.Rule), bytes.Compare(b.Key, o.Key))
}

// Get returns the ban of key under rule that holds at now.
func (t *Table) Get(rule uint32, hash uint64, key []byte, now int64) (b Ban, ok bool) {
	r, in := t.find(identity(rule, hash), key)
	if in == nil {
		return b, false
	}
	defer r.Unlock()
	e := entry(r.Words())
	if e.until() <= now {
		return b, false
	}
	b = t.ban(bytes.Clone(key), e)
	b.describe()
	return b, true
}
