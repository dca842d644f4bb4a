package ban

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
)

// A Match reports whether a ban is selected. It must not keep the key, change it or call
// the Table. reason returns the reason of the ban.
type Match func(rule uint32, key []byte, reason func() string) bool

// A Page is a part of the bans that hold.
type Page struct {
	Bans  []Ban
	Total int    // selected bans on all pages
	Next  string // the cursor of the next page; "" if there is none
}

// Page returns up to limit of the selected bans that hold at now, those that began last
// first. cursor is Page.Next of the page before, or "" for the first page. A ban that holds
// from the first page to the last is on exactly one of them. Page scans all bans, one shard
// after another under its lock, and allocates for those that it returns. The error is that
// of the cursor.
func (t *Table) Page(now int64, cursor string, limit int, match Match) (page Page, err error) {
	before, err := parseCursor(cursor)
	if err != nil {
		return page, err
	}
	var top []ref // the newest so far, more than limit after those in order
	more := false // bans come after those in top
	trim := func() {
		slices.SortFunc(top, func(a, b ref) int { return b.compare(a) })
		if len(top) > limit {
			top, more = top[:limit], true
		}
	}
	var seen ref // which match is about
	reasons := make(map[origin]string)
	reason := func() string { return seen.g.reason(seen.entry(), reasons) }
	t.each(func(r ref, e *entry) {
		seen = r
		if e.until <= now || !match(e.rule, r.g.key(e), reason) {
			return
		}
		page.Total++
		r.time = e.since
		if limit == 0 || before != nil && r.compare(*before) >= 0 || more && r.compare(top[limit-1]) < 0 {
			return
		}
		if top = append(top, r); len(top) >= 2*limit {
			trim()
		}
	})
	trim()
	if more {
		page.Next = top[limit-1].cursor()
	}
	for _, r := range top {
		if b, ok := r.ban(); ok && now < b.Until && b.Since == r.time {
			page.Bans = append(page.Bans, b)
		}
	}
	return page, nil
}

// reason returns the reason of an entry. Those that many bans have are kept in reasons.
func (g *generation) reason(e *entry, reasons map[origin]string) string {
	if _, ok := e.origin.counted(); !ok {
		reason, _ := g.texts(e)
		return string(reason)
	}
	reason, ok := reasons[e.origin]
	if !ok {
		reason = e.origin.reason()
		reasons[e.origin] = reason
	}
	return reason
}

// cursor returns the cursor of the page that follows r: its time, rule and key.
func (r ref) cursor() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.time))
	b = binary.BigEndian.AppendUint32(b, r.entry().rule)
	return base64.RawURLEncoding.EncodeToString(append(b, r.g.key(r.entry())...))
}

// parseCursor returns a ref that compares as the one of the cursor did, or nil for the
// first page.
func parseCursor(cursor string) (*ref, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 12 || len(b) > 12+MaxKey {
		return nil, fmt.Errorf("cursor: %.40q: must be one that came with a page of bans", cursor)
	}
	g := newGeneration(nil, 1, MaxKey)
	g.add(0, binary.BigEndian.Uint32(b[8:]), b[12:])
	return &ref{time: int64(binary.BigEndian.Uint64(b)), g: g, word: 1}, nil
}
