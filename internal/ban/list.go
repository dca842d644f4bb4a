package ban

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// Saved yields all bans, those that are remembered included, in no order. No lock is held
// while the loop's body runs: a ban that begins or ends meanwhile may be left out, but each is
// whole. The keys must not be changed.
func (t *Table) Saved() iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var bans []Ban
		reasons := make(map[origin]string)
		for in := range t.tables {
			for group := range in.Groups() {
				bans = bans[:0]
				var keys []byte // of this group
				for key, r := range group {
					keys = append(keys, key...)
					bans = append(bans, t.ban(keys[len(keys)-len(key):len(keys):len(keys)], r.Words(), reasons))
				}
				for i := range bans {
					if !yield(bans[i]) {
						return
					}
				}
			}
		}
	}
}

// All yields the bans that hold at now, by end, rule and key, as Saved does. The cost is a
// copy of each ban and a sort.
func (t *Table) All(now int64) iter.Seq[Ban] {
	var bans []Ban
	for b := range t.Saved() {
		if now < b.Until {
			bans = append(bans, b)
		}
	}
	slices.SortFunc(bans, func(a, b Ban) int { return cmp.Or(cmp.Compare(a.Until, b.Until), a.compare(&b)) })
	return slices.Values(bans)
}

// ban returns the newest ban of an entry. reasons has those that were put into words before.
func (t *Table) ban(key []byte, e entry, reasons map[origin]string) Ban {
	o := e.origin()
	b := Ban{Rule: e.rule(), Key: key, Since: e.since(), Until: e.until(), Count: e.count(), Memory: e.memory(), Source: SourceManual}
	if o.byRule() {
		b.Source = SourceRule
	}
	if o&originCount == 0 {
		x := t.texts.of(o)
		b.Reason, b.Source = x.reason, cmp.Or(x.source, b.Source)
		return b
	}
	b.counted = o
	reason, ok := reasons[o]
	if !ok {
		reason = o.reason()
		reasons[o] = reason
	}
	b.Reason = reason
	return b
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
	if e := entry(r.Words()); now < e.until() {
		return t.ban(bytes.Clone(key), e, make(map[origin]string)), true
	}
	return b, false
}
