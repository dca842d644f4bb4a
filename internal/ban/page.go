package ban

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
)

// A Query selects a page of the bans that hold. Its functions must not call the Table.
type Query struct {
	// Selects reports whether bans of a rule are selected.
	Selects func(rule uint32) bool

	// Match, if not nil, reports whether a ban is selected. It must not keep the key.
	Match func(rule uint32, key []byte, reason string) bool

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
// holds from the first page to the last is on exactly one of them. It scans all bans, one
// shard after another under its lock, and allocates for those that it returns. The error is
// that of the cursor.
func (t *Table) Page(now int64, q Query) (page Page, err error) {
	p := pageScan{limit: q.Limit}
	if p.before, err = parseCursor(q.Cursor); err != nil {
		return page, err
	}
	reasons := make(map[origin]string)
	t.each(func(r ref, e *entry) {
		if e.until <= now || !q.Selects(e.rule) || q.Match != nil && !q.Match(e.rule, r.g.key(e), r.g.reason(e, reasons)) {
			return
		}
		r.time = e.since
		page.Total++
		p.add(r)
	})
	p.trim()
	if p.more && len(p.top) > 0 {
		page.Next = p.top[len(p.top)-1].cursor()
	}
	for _, r := range p.top {
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

// A pageScan selects the bans of a page from those that a query selects.
type pageScan struct {
	limit  int
	before *ref // the last ban of the page before
	more   bool // bans come after those in top

	// top is the newest so far, up to twice the limit; after trim in order and up to the
	// limit.
	top   []ref
	least ref // the last of them after trim, if there were more
}

func (p *pageScan) add(r ref) {
	switch {
	case p.before != nil && r.compare(*p.before) >= 0:
	case p.limit == 0 || p.more && r.compare(p.least) < 0:
		p.more = true
	default:
		if p.top = append(p.top, r); len(p.top) >= 2*p.limit {
			p.trim()
		}
	}
}

// trim keeps as many of the newest as the limit, in order.
func (p *pageScan) trim() {
	slices.SortFunc(p.top, func(a, b ref) int { return b.compare(a) })
	if len(p.top) > p.limit {
		p.top, p.more = p.top[:p.limit], true
		p.least = p.top[p.limit-1]
	}
}
