package httpapi

import (
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A ban is a [ratelimit.BanRecord] for an answer.
type ban struct {
	Rule string `json:"rule"`
	keyText
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Count  uint64    `json:"count" doc:"how many bans the rule has begun for the key so far"`
	Reason string    `json:"reason"`
	Source string    `json:"source" doc:"rule, or who added it"`
}

func banOf(r *ratelimit.BanRecord) ban {
	return ban{r.Rule, keyTextOf(r.Key), r.Since.UTC(), r.Until.UTC(), r.Count, r.Reason, r.Source}
}

func bansOf(records []ratelimit.BanRecord) []ban {
	list := make([]ban, len(records))
	for i := range records {
		list[i] = banOf(&records[i])
	}
	return list
}

type banList struct {
	Bans  []ban  `json:"bans"`
	Total int    `json:"total" doc:"of all that match, listed or not"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; left out on the last one"`
}

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
	page, err := c.s.engine.BanPage(ratelimit.BanQuery{Rule: q.Get("rule"), Text: q.Get("q"), Limit: limit, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	return c.answer(banList{bansOf(page.Bans), page.Total, page.Next})
}

// A banRequest bans a key by hand.
type banRequest struct {
	Rule   string   `json:"rule"`
	Key    keyArg   `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
	For    string   `json:"for" doc:"a duration such as 10m or 24h"`
	Reason string   `json:"reason,omitempty"`
}

func addBan(c *call) error {
	var req banRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	d, err := rules.ParseDuration(req.For)
	if err != nil {
		return badArg("for is %q; allowed is a duration such as 10m or 24h, of at most 3650d", clip(req.For))
	}
	key, err := req.Key.values(req.Base64)
	if err != nil {
		return err
	}
	r, err := c.s.engine.Ban(req.Rule, key, d, req.Reason, c.source())
	if err != nil {
		return err
	}
	c.audit("ban added by hand", "rule", r.Rule, "key", logged(r.Key), "until", r.Until.UTC(), "reason", r.Reason)
	return c.answer(banOf(&r))
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

// An unbanRequest ends the ban of a key, or all bans that a filter selects.
type unbanRequest struct {
	Rule    string   `json:"rule,omitempty"`
	Key     keyArg   `json:"key,omitempty" doc:"the key whose ban ends; rule is required with it"`
	Base64  [][]byte `json:"key_base64,omitempty"`
	Pattern string   `json:"pattern,omitempty" doc:"a glob that matches a value of the key; * selects every ban"`
	Network string   `json:"network,omitempty" doc:"an address or network, such as 192.0.2.0/24, that contains a value of the key"`
}

type unbanned struct {
	Unbanned int `json:"unbanned" doc:"how many bans were ended; 0 if there was none"`
}

func unban(c *call) error {
	var req unbanRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.Key == nil && req.Base64 == nil {
		return c.unbanAll(&req)
	}
	if req.Pattern != "" || req.Network != "" {
		return badArg("there is a key beside a pattern or network; must be one of them")
	}
	key, err := req.Key.values(req.Base64)
	if err != nil {
		return err
	}
	ok, err := c.s.engine.Unban(req.Rule, key)
	if err != nil {
		return err
	}
	if !ok {
		return c.answer(unbanned{0})
	}
	c.audit("ban ended by hand", "rule", req.Rule, "key", logged(key))
	return c.answer(unbanned{1})
}

// unbanAll ends all bans that the request's filter selects.
func (c *call) unbanAll(req *unbanRequest) error {
	filter, err := engine.ParseBanFilter(req.Rule, req.Pattern, req.Network)
	if err != nil {
		return err
	}
	n, err := c.s.engine.UnbanAll(filter)
	if n > 0 {
		c.audit("bans ended by hand", "rule", req.Rule, "pattern", req.Pattern, "network", req.Network, "bans", n)
	}
	if err != nil {
		return err
	}
	return c.answer(unbanned{n})
}
