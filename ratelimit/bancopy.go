package ratelimit

import (
	"bytes"
	"strings"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/store"
)

// A banCopy is the bans that this process knows of: those of memory, or its copy of those in a shared store.
type banCopy store.BanCopy[*Set]

// rules returns the rules by their numbers in the table: the named one, or all of them if
// name is "".
func (c *banCopy) rules(name string) map[uint32]*Rule {
	rules := make(map[uint32]*Rule)
	for i, number := range c.Numbers {
		if r := c.Set.rules[i]; name == "" || name == r.Name {
			rules[number], rules[number|ofNetworks] = r, r
		}
	}
	return rules
}

// get returns the ban of a key under the named rule.
func (c *banCopy) get(rule string, key []byte) (record BanRecord, held bool, err error) {
	if c.Table == nil {
		return record, false, c.Err
	}
	i, ok := c.Set.names[rule]
	if !ok { // gone meanwhile
		return record, false, nil
	}
	stored, hash := c.Find(key)
	b, held := c.Table.Get(c.Numbers[i]|ofNetworks, hash, stored, c.Now)
	if !held {
		b, held = c.Table.Get(c.Numbers[i], hash, stored, c.Now)
	}
	if !held {
		return record, false, c.Err
	}
	return banRecord(c.Set.rules[i], &b), true, nil
}

// all yields the bans that hold, in the order in which they end.
func (c *banCopy) all(yield func(BanRecord, error) bool) {
	if c.Err != nil {
		yield(BanRecord{}, c.Err)
		return
	}
	rules := c.rules("")
	for b := range c.Table.All(c.Now) {
		if r := rules[b.Rule]; r != nil && !yield(banRecord(r, &b), nil) { // else the rule is gone
			return
		}
	}
}

// page returns a page of the bans that hold; see [internal.BanPage].
func (c *banCopy) page(q ban.Query) (bans []BanRecord, total int, next string, err error) {
	if c.Err != nil {
		return nil, 0, "", c.Err
	}
	if q.Rule != "" {
		if _, err := c.Set.Named(q.Rule); err != nil {
			return nil, 0, "", err
		}
	}
	rules := c.rules(q.Rule)
	p, err := c.Table.Page(c.Now, q.Cursor, q.Limit, func(b ban.Ban) bool {
		r := rules[b.Rule]
		if r == nil || q.Text == "" || strings.Contains(b.Reason, q.Text) {
			return r != nil
		}
		for v := range r.Key.Parts(b.Key) { // not across two of them
			if bytes.Contains(v, []byte(q.Text)) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return nil, 0, "", err
	}
	for i := range p.Bans {
		bans = append(bans, banRecord(rules[p.Bans[i].Rule], &p.Bans[i]))
	}
	return bans, p.Total, p.Next, nil
}

// held returns how many bans hold, by the names of rules. See [ban.Table.Counts] for the cost.
func (c *banCopy) held() map[string]int {
	held := make(map[string]int)
	if c.Table == nil {
		return held
	}
	numbers := c.Table.Counts(c.Now).Held
	for i, number := range c.Numbers {
		held[c.Set.rules[i].Name] = numbers[number]
	}
	return held
}
