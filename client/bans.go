package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
)

// A BanQuery selects bans. The zero BanQuery selects the newest 100 of all.
type BanQuery struct {
	Rule   string // "" is all
	Text   string // that the key or the reason has; "" is any
	Limit  int    // how many are returned, up to 1,000; 0 is the server's default, 100
	Cursor string // BanPage.Next of the page before; "" is the first page
}

// Bans returns a page of the bans that hold, those that began last first. To read all,
// set the query's Cursor to the page's Next until that is empty: a ban that holds
// throughout is on exactly one page.
func (c *Client) Bans(ctx context.Context, q BanQuery) (api.BanPage, error) {
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
	return get[api.BanPage](ctx, c, "/v1/bans", query)
}

// Ban bans a key under a rule for that long, and returns the ban. Once it has
// returned, the ban survives the end of a server that keeps its state. The time is
// rounded up to whole milliseconds.
func (c *Client) Ban(ctx context.Context, rule string, d time.Duration, reason string, key ...string) (api.Ban, error) {
	return post[api.Ban](ctx, c, "/v1/bans", api.BanRequest{Rule: rule, Key: api.KeyOf(key...), For: spanText(d), Reason: reason})
}

// Unban ends the ban of a key under a rule, and reports whether there was one. Once it
// has returned, the ban stays ended over a restart of a server that keeps its state.
func (c *Client) Unban(ctx context.Context, rule string, key ...string) (bool, error) {
	if len(key) == 0 { // the server would end all bans of the rule
		return false, errors.New("unban: key: missing: must be a value for each field of the rule's key")
	}
	out, err := post[api.Unbanned](ctx, c, "/v1/bans/unban", api.UnbanRequest{BanFilter: api.BanFilter{Rule: rule}, Key: api.KeyOf(key...)})
	return out.Unbanned > 0, err
}

// UnbanAll ends all bans that f selects, and returns how many. Once it has returned,
// they stay ended over a restart of a server that keeps its state. A ban that begins
// meanwhile may stay. The filter must not be empty; the Pattern "*" selects every ban.
func (c *Client) UnbanAll(ctx context.Context, f api.BanFilter) (n int, err error) {
	out, err := post[api.Unbanned](ctx, c, "/v1/bans/unban", f)
	return out.Unbanned, err
}

// spanText writes a duration as servers read one: in whole milliseconds, rounded up.
func spanText(d time.Duration) string { return strconv.FormatInt(int64(api.MillisOf(d)), 10) + "ms" }
