package ban

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/lately-go/lately/internal/counting/heap"
)

// A Query selects a page of the bans that hold.
type Query struct {
	Rule   string // "" means all rules
	Text   string // must be in a value of the key or in the reason; "" means any
	Limit  int    // the largest number of bans on the page
	Cursor string // returned with the page before; "" for the first page
}

// A Page is a part of the bans that hold.
type Page struct {
	Bans  []Ban
	Total int    // selected bans on all pages
	Next  string // the cursor of the next page; "" if there is none
}

// Page returns up to limit of the selected bans that hold at now, those that began last
// first. cursor is Page.Next of the page before, or "" for the first page. A ban that holds
// from the first page to the last is on exactly one of them. Page scans all bans, as Saved does.
func (t *Table) Page(now int64, cursor string, limit int, selects func(Ban) bool) (page Page, err error) {
	var before Ban
	if cursor != "" {
		if before, err = parseCursor(cursor); err != nil {
			return page, err
		}
	}
	top := heap.NewTop(max(limit, 1), func(a, b Ban) int { return b.compareStart(&a) })
	left := 0 // selected bans on this page and those that follow
	for b := range t.Saved() {
		if b.Until <= now || !selects(b) {
			continue
		}
		page.Total++
		if limit > 0 && (cursor == "" || b.compareStart(&before) < 0) {
			left++
			top.Add(b)
		}
	}
	if page.Bans = top.Items(); left > limit {
		page.Next = page.Bans[limit-1].cursor()
	}
	return page, nil
}

// compareStart orders by start, rule and key.
func (b *Ban) compareStart(o *Ban) int { return cmp.Or(cmp.Compare(b.Since, o.Since), b.compare(o)) }

// cursor returns the cursor of the page that follows b: its start, rule and key.
func (b *Ban) cursor() string {
	c := binary.BigEndian.AppendUint64(nil, uint64(b.Since))
	c = binary.BigEndian.AppendUint32(c, b.Rule)
	return base64.RawURLEncoding.EncodeToString(append(c, b.Key...))
}

// parseCursor returns a ban that compares as the one of the cursor did.
func parseCursor(cursor string) (Ban, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 12 || len(b) > 12+MaxKey {
		return Ban{}, fmt.Errorf("cursor: %.40q: must be one that came with a page of bans", cursor)
	}
	return Ban{Since: int64(binary.BigEndian.Uint64(b)), Rule: binary.BigEndian.Uint32(b[8:]), Key: b[12:]}, nil
}
