package ratelimit

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A BanQuery selects a page of the bans that hold, for [BanList.Page].
type BanQuery struct {
	// Rule is the rule of the bans; "" means all rules.
	Rule string

	// Text must be in a value of the key or in the reason; "" means any.
	Text string

	// Limit is how many bans are returned at most.
	Limit int

	// Cursor is BanPage.Next of the page before; "" means the first page.
	Cursor string
}

// A BanPage is what [BanList.Page] returns.
type BanPage struct {
	Bans  []BanRecord
	Total int    // how many bans the query selects, on all pages
	Next  string // the cursor of the next page; "" if there is none
}

// banPage returns a page of the bans that hold at now; see [BanList.Page].
func (m *memory) banPage(now int64, q BanQuery) (page BanPage, err error) {
	s := banScan{t: m.bans, now: now, query: q, rules: make(map[uint32]*Rule), rule: 1<<32 - 1}
	if s.below, err = parseBanPlace(q.Cursor); err != nil {
		return page, err
	}
	for _, mr := range m.rules.Load().rules {
		if q.Rule == "" || q.Rule == mr.Name {
			s.rules[mr.id] = mr.Rule
		}
	}
	for room := range m.bans.rooms {
		s.scan(room)
	}
	page.Total = s.total
	slices.SortFunc(s.top, func(a, b banPlace) int { return b.compare(a) })
	if s.more && len(s.top) > 0 {
		page.Next = s.top[len(s.top)-1].String()
	}
	for _, p := range s.top {
		if h, ok := m.bans.heldIn(p.number, s.now); ok && h.since == p.since {
			if r := s.rules[h.rule]; r != nil {
				page.Bans = append(page.Bans, h.record(r))
			}
		}
	}
	return page, nil
}

// A banPlace is the place of a ban in the order in which bans begin. Entries keep their
// numbers while their bans hold.
type banPlace struct {
	since  int64
	number uint32
}

func (p banPlace) compare(q banPlace) int {
	return cmp.Or(cmp.Compare(p.since, q.since), cmp.Compare(p.number, q.number))
}

// String returns p as a cursor.
func (p banPlace) String() string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], uint64(p.since))
	binary.BigEndian.PutUint32(b[8:], p.number)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// parseBanPlace parses a cursor. That of the first page, "", is above all places.
func parseBanPlace(cursor string) (banPlace, error) {
	if cursor == "" {
		return banPlace{1<<63 - 1, 1<<32 - 1}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 12 {
		return banPlace{}, fmt.Errorf("cursor: %.40q: must be one that came with a page of bans", cursor)
	}
	return banPlace{int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])}, nil
}

// A banScan is one pass over all entries of a banTable.
type banScan struct {
	t     *banTable
	now   int64
	query BanQuery
	rules map[uint32]*Rule
	below banPlace

	rule     uint32 // of the entry before
	selected bool   // that rule is one of rules

	total int
	more  bool       // there are places below those in top
	top   []banPlace // the highest so far, as a heap with the lowest first when it is full

	key     []byte
	reasons map[banCause]bool // whether a reason in words has the text
}

// scan looks at the entries of a room. It takes no lock: an entry that changes at the
// moment may be seen as it was, as it is, or not at all.
//
// Bans that begin one after another tend to have neighbouring entries. Chunks are
// visited far apart, so that most places are below those that are kept already.
func (s *banScan) scan(room int) {
	slab := &s.t.rooms[room].entries
	all := *slab.chunks.Load()
	chunks, perChunk := uint64(len(all)), uint32(1)<<slab.bits/entryWords
	step := chunks*5/8 | 1
	for gcd(step, chunks) > 1 {
		step++
	}
	for c := range chunks {
		at := c * step % chunks
		for i := range perChunk {
			s.look((*banEntry)(all[at][i*entryWords:]), uint32(room)<<31|(uint32(at)*perChunk+i))
		}
	}
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// look looks at the entry of that number.
func (s *banScan) look(e *banEntry, number uint32) {
	ident := e[entryIdent].Load()
	if ident == 0 || ident>>32&1 != 0 || e.until() <= s.now {
		return
	}
	if rule := uint32(ident); rule != s.rule {
		s.rule, s.selected = rule, s.rules[rule] != nil
	}
	if !s.selected || s.query.Text != "" && !s.mentions(e, ident) {
		return
	}
	p := banPlace{e.since(), number}
	if e[entryIdent].Load() != ident {
		return
	}
	s.total++
	if p.compare(s.below) < 0 {
		s.keep(p)
	}
}

// keep puts p among the highest, if it is one of them.
func (s *banScan) keep(p banPlace) {
	switch {
	case len(s.top) < s.query.Limit:
		if s.top = append(s.top, p); len(s.top) == s.query.Limit {
			for i := len(s.top)/2 - 1; i >= 0; i-- {
				s.sink(i)
			}
		}
	case s.query.Limit == 0 || p.compare(s.top[0]) < 0:
		s.more = true
	default:
		s.more = true
		s.top[0] = p
		s.sink(0)
	}
}

// sink moves the place at i down to where it belongs in the heap.
func (s *banScan) sink(i int) {
	for {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(s.top) && s.top[child].compare(s.top[least]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		s.top[i], s.top[least] = s.top[least], s.top[i]
		i = least
	}
}

// mentions reports whether the text is in the key or the reason of e, if that still has
// that ident.
func (s *banScan) mentions(e *banEntry, ident uint64) bool {
	a, b := e[entryKey].Load(), e[entryKey+1].Load()
	if e[entryIdent].Load() != ident {
		return false // a and b may not belong together
	}
	s.key = s.t.appendKey(s.key[:0], a, b)
	if bytes.Contains(s.key, []byte(s.query.Text)) {
		// In a key of several values, it may stand across two of them.
		for v := range s.rules[uint32(ident)].Key.Parts(s.key) {
			if bytes.Contains(v, []byte(s.query.Text)) {
				return true
			}
		}
	}
	c := e.cause()
	if place, reason, source := c.text(); reason+source > 0 {
		s.key = s.t.appendBlob(s.key[:0], place, reason)
		return bytes.Contains(s.key, []byte(s.query.Text))
	}
	has, ok := s.reasons[c]
	if !ok {
		if s.reasons == nil {
			s.reasons = make(map[banCause]bool)
		}
		has = strings.Contains(c.reason(), s.query.Text)
		s.reasons[c] = has
	}
	return has
}

// heldIn returns the ban of an entry, if it holds one at now.
func (t *banTable) heldIn(number uint32, now int64) (h heldBan, ok bool) {
	e := t.entry(number)
	s := &t.shards[e.hashLow()>>(t.shift&63)]
	s.mu.Lock()
	defer s.mu.Unlock()
	// Another key may have the entry now, and be in another shard.
	if e[entryIdent].Load()>>32&1 != 0 || &t.shards[e.hashLow()>>(t.shift&63)] != s || e.until() <= now {
		return h, false
	}
	return t.held(e), true
}
