package httpapi

import (
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

const maxBans = 1000

// listBans answers with a page of bans, those that began last first.
func listBans(c *call) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", 100, 0, maxBans)
	if err != nil {
		return err
	}
	page, err := c.s.Engine.BanPage(ratelimit.BanQuery{Rule: q.Get("rule"), Text: q.Get("q"), Limit: limit, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	list := make([]api.Ban, len(page.Bans))
	for i := range page.Bans {
		list[i] = engine.BanOf(&page.Bans[i])
	}
	return c.answer(api.BanPage{Bans: list, Total: page.Total, Next: page.Next})
}

func addBan(c *call) error {
	var req api.BanRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	d, err := rules.ParseDuration(req.For)
	if err != nil {
		return badArg("for is %q; allowed is a duration such as 10m or 24h, of at most 3650d", clip(req.For))
	}
	key, err := valuesOf(req.Key)
	if err != nil {
		return err
	}
	r, err := c.s.Engine.Ban(req.Rule, key, d, req.Reason, c.source())
	if err != nil {
		return err
	}
	c.audit("ban added by hand", "rule", r.Rule, "key", logged(r.Key), "until", r.Until.UTC(), "reason", r.Reason)
	return c.answer(engine.BanOf(&r))
}

// logged returns a key as one text for the log.
func logged(key []string) string { return strings.Join(key, string(engine.KeySeparator)) }

// source says who has added a ban.
func (c *call) source() string {
	source := "http"
	if c.who != "" {
		source += ":" + c.who
	}
	return strings.ToValidUTF8(source[:min(len(source), 64)], "")
}

// unban ends the ban of a key, or all bans that a filter selects.
func unban(c *call) error {
	var req api.UnbanRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if !given(req.Key) {
		return c.unbanAll(&req.BanFilter)
	}
	if req.Pattern != "" || req.Network != "" {
		return badArg("key: must not be combined with pattern or network")
	}
	key, err := valuesOf(req.Key)
	if err != nil {
		return err
	}
	ok, err := c.s.Engine.Unban(req.Rule, key)
	if err != nil {
		return err
	}
	if !ok {
		return c.answer(api.Unbanned{})
	}
	c.audit("ban ended by hand", "rule", req.Rule, "key", logged(key))
	return c.answer(api.Unbanned{Unbanned: 1})
}

// unbanAll ends all bans that f selects.
func (c *call) unbanAll(f *api.BanFilter) error {
	filter, err := engine.ParseBanFilter(f.Rule, f.Pattern, f.Network)
	if err != nil {
		return err
	}
	n, err := c.s.Engine.UnbanAll(filter)
	if n > 0 {
		c.audit("bans ended by hand", "rule", f.Rule, "pattern", f.Pattern, "network", f.Network, "bans", n)
	}
	if err != nil {
		return err
	}
	return c.answer(api.Unbanned{Unbanned: n})
}
