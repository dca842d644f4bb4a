package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// A Ban is one ban, as a server tells it.
type Ban struct {
	Rule   string    // under which the key is banned
	Key    []string  // the values of the rule's key, in the order of its fields
	Since  time.Time // when it began
	Until  time.Time // when it ends
	Count  uint64    // how many bans of the key the rule has begun so far
	Reason string
	Source string // "rule", or who added it
}

// UnmarshalJSON reads a ban as servers write it.
func (b *Ban) UnmarshalJSON(text []byte) error {
	var wire struct {
		ruleKey
		Since  time.Time `json:"since"`
		Until  time.Time `json:"until"`
		Count  uint64    `json:"count"`
		Reason string    `json:"reason"`
		Source string    `json:"source"`
	}
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*b = Ban{wire.Rule, wire.values(), wire.Since, wire.Until, wire.Count, wire.Reason, wire.Source}
	return nil
}

// A BanQuery selects bans. The zero BanQuery is the newest 100 of all.
type BanQuery struct {
	Rule   string // "" is all
	Text   string // that the key or the reason has; "" is any
	Limit  int    // how many are returned, up to 1,000; 0 is the server's default, 100
	Cursor string // BanPage.Next of the page before; "" is the first page
}

// A BanPage is a part of the bans that a query selects.
type BanPage struct {
	Bans  []Ban  `json:"bans"`
	Total int    `json:"total"` // of all pages
	Next  string `json:"next"`  // the cursor of the next page; "" on the last one
}

// Bans returns a page of the bans that hold, those that began last first. To read all,
// set the query's Cursor to the page's Next until that is empty: a ban that holds
// throughout is on exactly one page.
func (c *Client) Bans(ctx context.Context, q BanQuery) (BanPage, error) {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" && value != "0" {
			query.Set(name, value)
		}
	}
	set("rule", q.Rule)
	set("q", q.Text)
	set("limit", strconv.Itoa(q.Limit))
	set("cursor", q.Cursor)
	var page BanPage
	err := c.get(ctx, "/v1/bans", query, &page)
	return page, err
}

// Ban bans a key under a rule for that long, and returns the ban. Once it has
// returned, the ban survives the end of a server that keeps its state. The time is
// rounded up to whole milliseconds.
func (c *Client) Ban(ctx context.Context, rule string, d time.Duration, reason string, key ...string) (Ban, error) {
	in := struct {
		ruleKey
		For    string `json:"for"`
		Reason string `json:"reason,omitempty"`
	}{ruleKey{rule, wireKey(key)}, spanText(d), reason}
	var out Ban
	err := c.post(ctx, "/v1/bans", in, &out)
	return out, err
}

// Unban ends the ban of a key under a rule, and reports whether there was one. Once it
// has returned, the ban stays ended over a restart of a server that keeps its state.
func (c *Client) Unban(ctx context.Context, rule string, key ...string) (bool, error) {
	if len(key) == 0 { // the server would end all bans of the rule
		return false, errors.New("unban: key: missing: must be a value for each field of the rule's key")
	}
	var out struct {
		Unbanned int `json:"unbanned"`
	}
	err := c.post(ctx, "/v1/bans/unban", ruleKey{rule, wireKey(key)}, &out)
	return out.Unbanned > 0, err
}

// spanText writes a duration as servers read one: in whole milliseconds, rounded
// up.
func spanText(d time.Duration) string {
	ms := d / time.Millisecond
	if d > ms*time.Millisecond {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10) + "ms"
}
