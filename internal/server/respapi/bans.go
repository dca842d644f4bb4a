package respapi

import (
	"cmp"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
)

// ruleCommands are about the rules file.
var ruleCommands = []command{
	{
		name: "rules", summary: "The rules in force: name, kind, sentence",
		group: groupServer, role: access.Read, least: 1, most: 1, handle: listRules,
	},
}

// banCommands change and list bans.
var banCommands = []command{
	{
		name: "ban", usage: "rule key duration [reason]", summary: "Ban a key under a rule; returns when the ban is on disk",
		group: groupBans, role: access.Admin, least: 4, most: 5, key: 2, write: true, handle: ban,
	},
	{
		name: "unban", usage: "rule key | rule value value [value ...]", summary: "End a ban; returns the number of bans ended: 0, 1, or 2 if an address is also banned as a proxy. Values in separate arguments may contain tabs",
		group: groupBans, role: access.Admin, least: 3, key: 2, write: true, handle: unban,
	},
	{
		name: "unbanall", usage: "[RULE rule] [PATTERN glob] [NETWORK address]", summary: "End all bans under a rule, with a value of the key that matches a glob, or in a network; returns their number",
		group: groupBans, role: access.Admin, least: 3, most: 7, write: true, handle: unbanAll,
	},
	{
		name: "bans", usage: "[RULE rule] [COUNT n] [CURSOR cursor]", summary: "Bans in force, the newest first: rule, key, since and until in ms, count, reason, source; with CURSOR, from 0, the next cursor and a page of them",
		group: groupBans, role: access.Read, least: 1, most: 7, handle: listBans,
	},
}

func ban(c *conn, args [][]byte) error {
	d, err := readDuration("duration", args[3])
	if err != nil {
		return err
	}
	var reason string
	if len(args) == 5 {
		reason = string(args[4])
	}
	r, err := c.s.Engine.Bans().Ban(string(args[1]), copies(args[2:3]), d, reason, bans.Source("resp", c.who.Name))
	if err != nil {
		return err
	}
	c.audit("ban added by hand", "rule", r.Rule, "key", keys.Text(r.Values()), "until", r.Until, "reason", r.Reason)
	c.w.OK()
	return nil
}

func unban(c *conn, args [][]byte) error {
	rule, key := string(args[1]), copies(args[2:])
	n, err := c.s.Engine.Bans().Unban(rule, key)
	if n > 0 {
		c.audit("ban ended by hand", "rule", rule, "key", keys.Text(c.s.Engine.Listed(rule, key)))
	}
	if err != nil {
		return err
	}
	c.w.Int(int64(n))
	return nil
}

// unbanAll ends all bans that its filter selects.
func unbanAll(c *conn, args [][]byte) error {
	var f api.BanFilter
	once := func(name string, text *string) func([]byte) error {
		return func(value []byte) error {
			if *text != "" || len(value) == 0 {
				return badArg("%s: must be given once, with a value", name)
			}
			*text = string(value)
			return nil
		}
	}
	err := options(args[1:], "RULE rule, PATTERN glob or NETWORK address", map[string]func([]byte) error{
		"rule": once("RULE", &f.Rule), "pattern": once("PATTERN", &f.Pattern), "network": once("NETWORK", &f.Network),
	})
	if err != nil {
		return err
	}
	n, err := c.s.Engine.Bans().UnbanAll(f)
	if n > 0 {
		c.audit("bans ended by hand", "rule", f.Rule, "pattern", f.Pattern, "network", f.Network, "bans", n)
	}
	if err != nil {
		return err
	}
	c.w.Int(int64(n))
	return nil
}

// listBans answers with the newest bans, or with CURSOR with the next cursor and a page of them,
// like SCAN of Redis.
func listBans(c *conn, args [][]byte) error {
	q := bans.Query{Limit: 100}
	paged := false
	err := options(args[1:], "RULE rule, COUNT n or CURSOR cursor", map[string]func([]byte) error{
		"rule": func(value []byte) error { q.Rule = string(value); return nil },
		"count": func(value []byte) error {
			n, err := readInt("COUNT", value, 1, maxListed)
			q.Limit = int(n)
			return err
		},
		"cursor": func(value []byte) error {
			paged = true
			if q.Cursor = string(value); q.Cursor == firstCursor {
				q.Cursor = ""
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	page, err := c.s.Engine.Bans().Page(q)
	if err != nil {
		return err
	}
	if !c.w.Reserve(banBytes(page.Bans)) {
		return errBusy
	}
	if paged {
		c.w.Array(2)
		c.w.BulkString(cmp.Or(page.Next, firstCursor))
	}
	c.w.Array(len(page.Bans))
	for i := range page.Bans {
		c.writeBan(&page.Bans[i])
	}
	return nil
}

// firstCursor begins a list, and is the next cursor of its last page.
const firstCursor = "0"

// banBytes returns the approximate length of a reply with these bans.
func banBytes(bans []api.Ban) int {
	n := 64
	for i := range bans {
		b := &bans[i]
		n += 128 + len(b.Rule) + len(b.Reason) + len(b.Source)
		for _, v := range b.Values() {
			n += len(v) + 1
		}
	}
	return n
}

func (c *conn) writeBan(r *api.Ban) {
	c.w.Array(7)
	c.strings(r.Rule, keys.Text(r.Values()))
	c.w.Ints(engine.EpochMillis(r.Since), engine.EpochMillis(r.Until), wireCount(r.Count))
	c.strings(r.Reason, r.Source)
}

func listRules(c *conn, _ [][]byte) error {
	infos := c.s.Engine.RuleInfos()
	c.w.Array(len(infos))
	for i := range infos {
		c.w.Array(3)
		c.strings(infos[i].Name, infos[i].Kind, infos[i].Sentence)
	}
	return nil
}
