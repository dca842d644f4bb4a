package httpapi

import (
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/keys"
)

// banRoutes returns the routes about bans.
func banRoutes() []route {
	return []route{
		{"GET", "/v1/bans", access.Read, queryHandler(listBans), "bans", "List the current bans, the newest first", []parameter{
			{"rule", "under this rule only", "login", false},
			{"q", "with this text in the key or the reason", "203.0", false},
			{"limit", "how many, up to 1000", "100", false},
			{"cursor", "next of the page before; by default the first page", "AAAAAAAAAAAAAAAA", false},
		}},
		{"POST", "/v1/bans", access.Admin, created(bodyHandler(addBan)), "ban", "Ban a key by hand; returns when the ban is on disk", nil},
		{
			"POST", "/v1/bans/unban", access.Admin, bodyHandler(unban), "unban",
			"End the ban of a key, or all bans that match the given rule, pattern of the key and network", nil,
		},
	}
}

func listBans(c *call) (list api.BanPage, err error) {
	limit, err := c.number("limit", 100, 0, 1000)
	if err != nil {
		return list, err
	}
	return c.s.Engine.Bans().Page(bans.Query{Rule: c.query.Get("rule"), Text: c.query.Get("q"), Limit: limit, Cursor: c.query.Get("cursor")})
}

func addBan(c *call, req *api.BanRequest) (ban api.Ban, err error) {
	d, err := rulevalue.ParseDuration(req.For)
	if err != nil {
		return ban, badArg("for: %q: must be a duration of 1ms to 3650d, such as 10m or 24h", clip(req.For))
	}
	key, err := valuesOf(req.Key)
	if err != nil {
		return ban, err
	}
	ban, err = c.s.Engine.Bans().Ban(req.Rule, key, d, req.Reason, bans.Source("http", c.Name))
	if err == nil {
		c.audit("ban added by hand", "rule", ban.Rule, "key", keys.Text(ban.Values()), "until", ban.Until, "reason", ban.Reason)
	}
	return ban, err
}

func unban(c *call, req *api.UnbanRequest) (api.Unbanned, error) {
	if !given(req.Key) {
		return c.unbanAll(req.BanFilter)
	}
	if req.Pattern != "" || req.Network != "" {
		return api.Unbanned{}, badArg("key: must not be combined with pattern or network")
	}
	key, err := valuesOf(req.Key)
	if err != nil {
		return api.Unbanned{}, err
	}
	n, err := c.s.Engine.Bans().Unban(req.Rule, key)
	if n > 0 {
		c.audit("ban ended by hand", "rule", req.Rule, "key", keys.Text(c.s.Engine.Listed(req.Rule, key)))
	}
	return api.Unbanned{Unbanned: n}, err
}

func (c *call) unbanAll(f api.BanFilter) (api.Unbanned, error) {
	n, err := c.s.Engine.Bans().UnbanAll(f)
	if n > 0 {
		c.audit("bans ended by hand", "rule", f.Rule, "pattern", f.Pattern, "network", f.Network, "bans", n)
	}
	return api.Unbanned{Unbanned: n}, err
}
