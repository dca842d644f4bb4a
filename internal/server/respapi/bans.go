package respapi

import (
	"cmp"
	"errors"
	"strings"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

// valuesOf takes a key apart, into strings of its own. How many values it has is
// looked at by the engine: one that counts by one field has the tab in it.
func (c *conn) valuesOf(rule string, key []byte) []string {
	text := string(key)
	set := c.s.engine.Limiter().Set()
	if r, err := set.Named(rule); err == nil && len(r.Key.Fields()) == 1 {
		return []string{text}
	}
	return strings.Split(text, string(engine.KeySeparator))
}

func ban(c *conn, args [][]byte) error {
	d, err := durationOf("duration", args[3])
	if err != nil {
		return err
	}
	var reason string
	if len(args) == 5 {
		reason = string(args[4])
	}
	rule := string(args[1])
	r, err := c.s.engine.Ban(rule, c.valuesOf(rule, args[2]), d, reason, c.source())
	if err != nil {
		return err
	}
	c.audit("ban added by hand", "rule", r.Rule, "key", joined(r.Key), "until", r.Until.UTC(), "reason", r.Reason)
	c.w.OK()
	return nil
}

// source says who has added a ban.
func (c *conn) source() string {
	source := "resp"
	if c.who.Name != "" {
		source += ":" + c.who.Name
	}
	return strings.ToValidUTF8(source[:min(len(source), 64)], "")
}

func unban(c *conn, args [][]byte) error {
	rule := string(args[1])
	key := c.valuesOf(rule, args[2])
	if len(args) > 3 { // values that may have the separator in them
		key = key[:0]
		for _, v := range args[2:] {
			key = append(key, string(v))
		}
	}
	ok, err := c.s.engine.Unban(rule, key)
	if err != nil {
		return err
	}
	if !ok {
		c.w.Int(0)
		return nil
	}
	c.audit("ban ended by hand", "rule", rule, "key", joined(key))
	c.w.Int(1)
	return nil
}

// unbanAll ends all bans that its filter selects.
func unbanAll(c *conn, args [][]byte) error {
	var rule, pattern, network string
	words := map[string]*string{"rule": &rule, "pattern": &pattern, "network": &network}
	for rest := args[1:]; len(rest) > 0; rest = rest[2:] {
		value := words[strings.ToLower(string(rest[0]))]
		switch {
		case value == nil || len(rest) == 1:
			return badArg("'%.32s': must be RULE rule, PATTERN glob or NETWORK address", rest[0])
		case *value != "" || len(rest[1]) == 0:
			return badArg("%.32s: must be given once, with a value", rest[0])
		}
		*value = string(rest[1])
	}
	filter, err := engine.ParseBanFilter(rule, pattern, network)
	if err != nil {
		return err
	}
	n, err := c.s.engine.UnbanAll(filter)
	if n > 0 {
		c.audit("bans ended by hand", "rule", rule, "pattern", pattern, "network", network, "bans", n)
	}
	if err != nil {
		return err
	}
	c.w.Int(int64(n))
	return nil
}

// bans answers with the bans that began last. With CURSOR it answers with the next
// cursor and a page of them, as SCAN of Redis does.
func bans(c *conn, args [][]byte) error {
	q := ratelimit.BanQuery{Limit: 100}
	paged := false
	rest := args[1:]
	for ; len(rest) >= 2; rest = rest[2:] {
		switch {
		case isWord(rest[0], "rule"):
			q.Rule = string(rest[1])
		case isWord(rest[0], "count"):
			n, err := readInt("COUNT", rest[1], 1, maxListed)
			if err != nil {
				return err
			}
			q.Limit = int(n)
		case isWord(rest[0], "cursor"):
			paged = true
			if q.Cursor = string(rest[1]); q.Cursor == firstCursor {
				q.Cursor = ""
			}
		default:
			return badArg("'%.32s' is unknown; must be RULE rule, COUNT n or CURSOR cursor", rest[0])
		}
	}
	if len(rest) > 0 {
		return badArg("'%.32s' has no value; must be RULE rule, COUNT n or CURSOR cursor", rest[0])
	}
	page, err := c.s.engine.BanPage(q)
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

// firstCursor begins a list, and says that there is no more of it.
const firstCursor = "0"

// banBytes returns about how long an answer with these bans is.
func banBytes(bans []ratelimit.BanRecord) int {
	n := 64
	for i := range bans {
		b := &bans[i]
		n += 128 + len(b.Rule) + len(b.Reason) + len(b.Source)
		for _, v := range b.Key {
			n += len(v) + 1
		}
	}
	return n
}

func (c *conn) writeBan(r *ratelimit.BanRecord) {
	c.w.Array(7)
	c.w.BulkString(r.Rule)
	c.w.BulkString(joined(r.Key))
	c.w.Int(engine.EpochMillis(r.Since))
	c.w.Int(engine.EpochMillis(r.Until))
	c.w.Int(wireCount(r.Count))
	c.w.BulkString(r.Reason)
	c.w.BulkString(r.Source)
}

func listRules(c *conn, args [][]byte) error {
	if len(args) > 1 {
		return c.reload(args[1:])
	}
	infos := c.s.engine.RuleInfos()
	c.w.Array(len(infos))
	for i := range infos {
		c.w.Array(3)
		c.w.BulkString(infos[i].Name)
		c.w.BulkString(infos[i].Kind)
		c.w.BulkString(infos[i].Sentence)
	}
	return nil
}

// reload answers with what it has changed.
func (c *conn) reload(words [][]byte) error {
	dropBans := len(words) > 1
	if !isWord(words[0], "reload") || dropBans && !isWord(words[1], "dropbans") {
		return badArg("'%.32s' is not known; allowed are RULES and RULES RELOAD [DROPBANS]", words[len(words)-1])
	}
	if c.s.config.Reload == nil {
		return badArg("there is no rules file to read again")
	}
	changes, err := c.s.config.Reload(dropBans)
	if known, ok := errors.AsType[*engine.Error](err); ok {
		return known
	}
	if err != nil {
		return badArg("the rules stay as they were: %v", err)
	}
	c.audit("rules reloaded by hand")
	c.w.Map(4)
	for _, list := range []struct {
		name  string
		names []string
	}{{"added", changes.Added}, {"removed", changes.Removed}, {"changed", changes.Changed}} {
		c.w.BulkString(list.name)
		c.w.Array(len(list.names))
		for _, name := range list.names {
			c.w.BulkString(name)
		}
	}
	c.w.BulkString("bans_dropped")
	c.w.Int(int64(changes.BansDropped))
	return nil
}
