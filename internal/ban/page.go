package ban

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A Query selects a page of the bans that hold.
type Query struct {
	// Selects reports whether bans of a rule are selected.
	Selects func(rule uint32) bool

	// Text must be in the key or the reason; "" means any. InKey reports whether it is in
	// a value of a key that contains it.
	Text  string
	InKey func(rule uint32, key []byte) bool

	// Limit is how many bans are returned at most.
	Limit int

	// Cursor is Page.Next of the page before; "" means the first page.
	Cursor string
}

// A Page is a part of the bans that a Query selects.
type Page struct {
	Bans  []Ban
	Total int    // on all pages
	Next  string // the cursor of the next page; "" if there is none
}

// Page returns a page of the bans that hold at now, those that began last first. A ban that
// holds from the first page to the last is on exactly one of them. It scans all bans, takes
// a lock only for those that it returns, and allocates for these only. The error is that
// of the cursor.
func (t *Table) Page(now int64, q Query) (page Page, err error) {
	s := pageScan{t: t, query: q}
	if s.before, err = parseCursor(q.Cursor); err != nil {
		return page, err
	}
	for number, e := range t.scan() {
		s.look(number, e, now)
	}
	s.trim()
	page.Total = s.total
	if s.more && len(s.top) > 0 {
		page.Next = s.top[len(s.top)-1].cursor()
	}
	for _, r := range s.top {
		if shard, e, ok := t.lock(r); ok {
			if now < e.until() && e.since() == r.time {
				page.Bans = append(page.Bans, t.ban(e))
			}
			shard.mu.Unlock()
		}
	}
	return page, nil
}

// Bans are ordered by their start, and then by their entry, which does not change while
// the ban holds.
func (r ref) compare(q ref) int {
	return cmp.Or(cmp.Compare(r.time, q.time), cmp.Compare(r.number, q.number))
}

// cursor returns the cursor of the page that follows r.
func (r ref) cursor() string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], uint64(r.time))
	binary.BigEndian.PutUint32(b[8:], r.number)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// parseCursor parses a cursor. That of the first page, "", follows all bans.
func parseCursor(cursor string) (ref, error) {
	if cursor == "" {
		return ref{time: 1<<63 - 1, number: 1<<32 - 1}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 12 {
		return ref{}, fmt.Errorf("cursor: %.40q: must be one that came with a page of bans", cursor)
	}
	return ref{time: int64(binary.BigEndian.Uint64(b)), number: binary.BigEndian.Uint32(b[8:])}, nil
}

// A pageScan selects the bans of a page.
type pageScan struct {
	t      *Table
	query  Query
	before ref

	total int
	more  bool  // bans come after those in top
	top   []ref // the newest so far, up to twice the limit; sorted if there are not more than it
	least ref   // the last of them, once there were as many as the limit

	text    []byte
	reasons map[origin]bool // whether the reason contains the text
}

// look looks at an entry.
func (s *pageScan) look(number uint32, e *entry, now int64) {
	ident := e.ident()
	if e.until() <= now || !s.query.Selects(uint32(ident)) || s.query.Text != "" && !s.contains(e, ident) {
		return
	}
	r := ref{e.since(), ident, number}
	if e.ident() != ident {
		return
	}
	s.total++
	switch {
	case r.compare(s.before) >= 0:
	case s.query.Limit == 0 || s.more && r.compare(s.least) < 0:
		s.more = true
	default:
		if s.top = append(s.top, r); len(s.top) >= 2*s.query.Limit {
			s.trim()
		}
	}
}

// trim keeps as many of the newest as the limit, in order.
func (s *pageScan) trim() {
	slices.SortFunc(s.top, func(a, b ref) int { return b.compare(a) })
	if limit := s.query.Limit; len(s.top) > limit {
		s.top, s.more = s.top[:limit], true
		s.least = s.top[limit-1]
	}
}

// contains reports whether the text is in the key or the reason of e, if its ident is
// still that.
func (s *pageScan) contains(e *entry, ident uint64) bool {
	a, b := e[entryKey].Load(), e[entryKey+1].Load()
	if e.ident() != ident {
		return false // a and b may not belong together
	}
	text := []byte(s.query.Text)
	s.text = s.t.appendKey(s.text[:0], a, b)
	if bytes.Contains(s.text, text) && s.query.InKey(uint32(ident), s.text) {
		return true
	}
	o := e.origin()
	if place, reason, source := o.text(); reason+source > 0 {
		s.text = s.t.texts.append(s.text[:0], place, reason)
		return bytes.Contains(s.text, text)
	}
	has, ok := s.reasons[o]
	if !ok {
		if s.reasons == nil {
			s.reasons = make(map[origin]bool)
		}
		has = strings.Contains(o.reason(), s.query.Text)
		s.reasons[o] = has
	}
	return has
}
