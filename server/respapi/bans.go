package respapi

import (
	"strings"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/server/engine"
)

// valuesOf takes a key apart, into strings of its own. How many values it has is
// looked at by the engine: one that counts by one field has the tab in it.
func (c *conn) valuesOf(rule string, key []byte) []string {
	text := string(key)
	set := c.s.engine.Limiter().Set()
	if r, ok := set.Named(rule); ok && len(r.Key.Fields()) == 1 {
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
	c.audit("a key was banned", "rule", r.Rule, "key", r.Key, "until", r.Until, "reason", r.Reason)
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
	ok, err := c.s.engine.Lift(rule, key)
	if err != nil {
		return err
	}
	if !ok {
		c.w.Int(0)
		return nil
	}
	c.audit("a ban was lifted", "rule", rule, "key", key)
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
		c.audit("bans were ended", "rule", rule, "pattern", pattern, "network", network, "bans", n)
	}
	if err != nil {
		return err
	}
	c.w.Int(int64(n))
	return nil
}

// bans answers with the bans that began last.
func bans(c *conn, args [][]byte) error {
	rule, n := "", int64(100)
	rest := args[1:]
	for ; len(rest) >= 2; rest = rest[2:] {
		var err error
		switch {
		case isWord(rest[0], "rule"):
			rule = string(rest[1])
		case isWord(rest[0], "count"):
			n, err = readInt("COUNT", rest[1], 1, maxListed)
		default:
			err = badArg("'%.32s' is not known; allowed are RULE rule and COUNT n", rest[0])
		}
		if err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return badArg("'%.32s' is the last argument; allowed are RULE rule and COUNT n", rest[0])
	}
	newest, _, err := c.s.engine.NewestBans(rule, "", int(n))
	if err != nil {
		return err
	}
	c.w.Array(len(newest))
	for i := range newest {
		c.writeBan(&newest[i])
	}
	return nil
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
	if len(args) == 2 {
		return c.reload(args[1])
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

func (c *conn) reload(word []byte) error {
	if !isWord(word, "reload") {
		return badArg("'%.32s' is not known; allowed are RULES and RULES RELOAD", word)
	}
	if c.s.config.Reload == nil {
		return badArg("there is no rules file to read again")
	}
	if err := c.s.config.Reload(); err != nil {
		return badArg("the rules stay as they were: %v", err)
	}
	c.audit("the rules were read again")
	c.w.OK()
	return nil
}
