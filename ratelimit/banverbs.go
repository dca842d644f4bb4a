package ratelimit

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// ErrNoRoom is the error of a ban for which a store has no room.
var ErrNoRoom = errors.New("ratelimit: no room for another ban")

// Bans yields the bans that hold now. With [Memory] they come in the order in
// which they end, with no lock held while the loop's body runs: what changes
// meanwhile may be among them or not, but each is whole. An error of the store
// ends it.
func (l *Limiter) Bans() iter.Seq2[BanRecord, error] {
	if l.memory != nil {
		return l.memory.bansAt(l.now())
	}
	return l.store.Bans()
}

// Ban bans a key under a rule from now on, whatever was counted, until b.Until.
// The zero b.Since is now, and the empty b.Source "manual". A ban that holds for
// longer stays as it is. The error says what is wrong with b, that the client is
// on the allow list, which a ban does not touch, or that there is no room; with
// [Memory] that is ErrNoRoom.
//
// A client in b.Key is folded like one of an event, so that the address of a
// customer stands for its prefix. A network that clients are not folded to is an
// error. Other values are taken as they are.
func (l *Limiter) Ban(b BanRecord) error {
	now := l.now()
	if b.Since.IsZero() {
		b.Since = time.Unix(0, now)
	}
	allowed := l.allows(&b)
	key, err := l.checkBan(&b, now)
	if err != nil {
		return err
	}
	if nanos(b.Until) <= now {
		return fmt.Errorf("until is %s; allowed is a time to come", jsonTime(b.Until))
	}
	if allowed || l.allows(&b) {
		return fmt.Errorf("key %q is on the allow list; a ban would change nothing", b.Key)
	}
	_, err = l.add(b, key, now)
	return err
}

// Lift ends the ban of a key under the named rule, and forgets the bans before
// it. It reports whether one held. The key is as in a [BanRecord].
func (l *Limiter) Lift(rule string, key ...string) (bool, error) {
	b := BanRecord{Rule: rule, Key: key}
	set := l.Set()
	r := set.named(rule)
	if r == nil {
		return false, set.NoRule(rule)
	}
	k, digest := listedDigest(r.Key, b.Key)
	if !digest {
		var err error
		if k, err = valuesKey(r.Key, b.Key); err != nil {
			return false, err
		}
	}
	held := false
	if local := l.local.Load(); local != nil {
		held = local.lift(rule, k, l.now())
	}
	if l.memory == nil {
		at, err := l.store.Lift(rule, k)
		return held || at, err
	}
	return held, nil
}

// ExportBans writes the bans that hold now as JSON, one object a line; see
// [WriteBans].
func (l *Limiter) ExportBans(w io.Writer) error {
	var failed error
	err := WriteBans(w, func(yield func(BanRecord) bool) {
		for b, err := range l.Bans() {
			if err != nil {
				failed = err
				return
			}
			if !yield(b) {
				return
			}
		}
	})
	return errors.Join(failed, err)
}

// An ImportReport says what became of the bans that were imported. Each is one
// of the numbers.
type ImportReport struct {
	Added   int // and those that were there as they are, with a store that is no Memory
	Kept    int // a ban that ends no earlier was there
	Over    int // had ended
	Allowed int // of clients on the allow list
	Unknown int // under a rule that there is not, or that has another key
	NoRoom  int // more than there is room for
}

// ImportBans adds the bans that ExportBans has written, with their starts, ends
// and counts. Those that have ended are left out; none ends earlier what holds.
// It stops at the first line that is not a ban, which the error names; those
// before it have been added, and adding them again changes nothing.
func (l *Limiter) ImportBans(r io.Reader) (ImportReport, error) {
	var report ImportReport
	n := 0
	for b, err := range ReadBans(r) {
		if n++; err != nil {
			return report, err
		}
		if err := l.importBan(&b, &report); err != nil {
			return report, fmt.Errorf("ban %d: %w", n, err)
		}
	}
	return report, nil
}

// importBan adds b, and one to what report says of it.
func (l *Limiter) importBan(b *BanRecord, report *ImportReport) error {
	now := l.now()
	r := l.Set().named(b.Rule)
	switch {
	case nanos(b.Until) <= now:
		report.Over++
		return nil
	case r == nil:
		report.Unknown++
		return nil
	}
	key, digest := listedDigest(r.Key, b.Key)
	if len(r.Key.Fields()) != len(b.Key) && (!digest || b.Source != sourceRule || l.memory == nil) {
		report.Unknown++
		return nil
	}
	allowed := l.allows(b)
	if !digest {
		var err error
		if key, err = l.checkBan(b, now); err != nil {
			return err
		}
	}
	if allowed || l.allows(b) {
		report.Allowed++
		return nil
	}
	switch change, err := l.add(*b, key, now); {
	case errors.Is(err, ErrNoRoom):
		report.NoRoom++
	case err != nil:
		return err
	case change == banKept:
		report.Kept++
	default:
		report.Added++
	}
	return nil
}

// checkBan checks b at now, and returns its key. It fills in what may be left
// out, and the values of the key as they are counted.
func (l *Limiter) checkBan(b *BanRecord, now int64) (key []byte, err error) {
	if b.Source == "" {
		b.Source = sourceManual
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	if b.Since.IsZero() {
		b.Since = time.Unix(0, now)
	}
	set := l.Set()
	r := set.named(b.Rule)
	if r == nil {
		return nil, set.NoRule(b.Rule)
	}
	if latest := time.Unix(0, now).Add(MaxSpan); b.Until.After(latest) {
		return nil, fmt.Errorf("until is %s; allowed is at most %v from now, %s", jsonTime(b.Until), MaxSpan, jsonTime(latest))
	}
	if key, err = banKey(r.Key, b.Key); err != nil {
		return nil, err
	}
	if b.Source != sourceRule { // else an event had it
		if err := checkBanClient(r.Key, b.Key); err != nil {
			return nil, err
		}
	}
	b.Key = banValues(r.Key, key)
	return key, nil
}

// allows reports whether the client of a ban is on the allow list: an address that
// is, or a prefix of which all addresses are. It is asked before the client is
// folded and after: an address of a prefix may be on the list by itself.
func (l *Limiter) allows(b *BanRecord) bool {
	s := l.Set()
	i, ok := s.names[b.Rule]
	if !ok {
		return false
	}
	at, k := s.clients[i], &s.rules[i].Key
	return at >= 0 && at < len(b.Key) && s.allowsValue(k.ClientOf(at, []byte(b.Key[at])))
}

// add adds b, which has been checked, to the store.
func (l *Limiter) add(b BanRecord, key []byte, now int64) (banChange, error) {
	if l.memory != nil {
		return l.memory.addBan(b, key, now)
	}
	return banAdded, l.store.Ban(b)
}

// named returns the rule of that name, or nil.
func (s *Set) named(name string) *Rule {
	r, _ := s.Named(name)
	return r
}

// bansAt yields the bans that hold at now.
func (m *Memory) bansAt(now int64) iter.Seq2[BanRecord, error] {
	return func(yield func(BanRecord, error) bool) {
		rules := make(map[uint32]*Rule)
		for _, mr := range m.rules.Load().rules {
			rules[mr.id] = mr.Rule
		}
		for h := range m.bans.each(now) {
			r := rules[h.rule]
			if r == nil {
				continue // gone meanwhile
			}
			if !yield(h.record(r), nil) {
				return
			}
		}
	}
}

// record returns h as it is listed, of a key of r.
func (h *heldBan) record(r *Rule) BanRecord {
	return BanRecord{
		Rule: r.Name, Key: banValues(r.Key, h.key), Since: time.Unix(0, h.since), Until: time.Unix(0, h.until),
		Count: h.count, Reason: h.reason, Source: h.source,
	}
}

// addBan adds b, whose key that is and which has been checked, at now.
func (m *Memory) addBan(b BanRecord, key []byte, now int64) (banChange, error) {
	rs := m.rules.Load()
	mr := rs.named(b.Rule)
	if mr == nil {
		return banNoRoom, rs.set.NoRule(b.Rule)
	}
	memory := time.Duration(defaultRemember)
	if mr.Ban != nil {
		memory = mr.Ban.remember()
	}
	h := heldBan{
		rule: mr.id, key: key, since: now, until: nanos(b.Until), count: b.Count,
		reason: b.Reason, source: b.Source,
	}
	if !b.Since.IsZero() {
		h.since = nanos(b.Since)
	}
	hash := mr.records.table.Hash(string(key))
	change := m.bans.add(hash, &h, memory, now)
	rs = m.rules.Load()
	if after := rs.named(b.Rule); after == nil || after.id != mr.id {
		m.bans.lift(mr.id, hash, key, now) // the rule has gone, and its bans
		return change, rs.set.NoRule(b.Rule)
	}
	if change == banNoRoom {
		return change, ErrNoRoom
	}
	return change, nil
}

// lift ends the ban of key under a rule, and reports whether one held at now.
func (m *Memory) lift(rule string, key []byte, now int64) bool {
	mr := m.rules.Load().named(rule)
	if mr == nil {
		return false
	}
	key = m.stored(key)
	return m.bans.lift(mr.id, mr.records.table.Hash(string(key)), key, now)
}
