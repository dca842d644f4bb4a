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
	Rule   string // "" means all
	Text   string // contained in the key or the reason; "" means any
	Limit  int    // of a page, up to 1,000; 0 means 100
	Cursor string // BanPage.Next of the page before; "" means the first page
}

// Bans returns a page of the current bans, the newest first. To read all, set the query's
// Cursor to the page's Next until it is empty: a ban that stays in force is on exactly
// one page.
func (c *Client) Bans(ctx context.Context, q BanQuery) (api.BanPage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"rule": q.Rule, "q": q.Text, "limit": strconv.Itoa(q.Limit), "cursor": q.Cursor} {
		if value != "" && value != "0" {
			query.Set(name, value)
		}
	}
	return get[api.BanPage](ctx, c, "/v1/bans", query)
}

// Ban bans a key under a rule for d, rounded up to whole milliseconds, and returns the
// ban. It returns when the ban is on the server's disk, if the server has a data
// directory.
func (c *Client) Ban(ctx context.Context, rule string, d time.Duration, reason string, key ...string) (api.Ban, error) {
	return post[api.Ban](ctx, c, "/v1/bans", api.BanRequest{Rule: rule, Key: api.KeyOf(key...), For: spanText(d), Reason: reason})
}

// Unban ends the ban of a key under a rule, and returns the number of bans ended: 0, 1, or 2
// if the address in key is also banned as a proxy that does not name its clients. It returns
// when the change is on the server's disk, if the server has a data directory.
func (c *Client) Unban(ctx context.Context, rule string, key ...string) (int, error) {
	if len(key) == 0 { // the server would end all bans of the rule
		return 0, errors.New("unban: key: missing: must be a value for each field of the rule's key")
	}
	out, err := post[api.Unbanned](ctx, c, "/v1/bans/unban", api.UnbanRequest{BanFilter: api.BanFilter{Rule: rule}, Key: api.KeyOf(key...)})
	return out.Unbanned, err
}

// UnbanAll is Unban for all bans that f selects, and returns their number. A ban that
// begins during the call may stay. The filter must not be empty; the Pattern "*" selects
// every ban.
func (c *Client) UnbanAll(ctx context.Context, f api.BanFilter) (n int, err error) {
	out, err := post[api.Unbanned](ctx, c, "/v1/bans/unban", f)
	return out.Unbanned, err
}

// spanText writes a duration in whole milliseconds, rounded up.
func spanText(d time.Duration) string { return strconv.FormatInt(int64(api.MillisOf(d)), 10) + "ms" }
