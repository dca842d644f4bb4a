package client

import (
	"context"
	"time"
)

// A RuleBook is the rules that a server has in force.
type RuleBook struct {
	File  string    `json:"file"` // "" if there is none
	Text  string    `json:"text"` // of the file
	Since time.Time `json:"since"`
	Error string    `json:"error"` // why the last reload failed; "" if it did not
	Rules []Rule    `json:"rules"` // limits and bans first
	Allow []string  `json:"allow"` // whom no rule judges
}

// A Rule is one rule in force.
type Rule struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind"`     // limit, ban or hot
	Fields   []string   `json:"fields"`   // of its key
	Sentence string     `json:"sentence"` // what it says
	Shadow   bool       `json:"shadow"`   // it refuses nothing
	Stats    *RuleStats `json:"stats"`    // nil for a hot rule
}

// RuleStats counts the decisions of one rule since the server started by outcome, and
// what the rule holds. Each event that matched the rule has one of the first five
// outcomes.
type RuleStats struct {
	Allowed     uint64 `json:"allowed"`
	Refused     uint64 `json:"refused"`      // by a limit of the rule
	Banned      uint64 `json:"banned"`       // refused by a ban of the rule
	Shadow      uint64 `json:"shadow"`       // that the rule would have refused, were it not in shadow mode
	Skipped     uint64 `json:"skipped"`      // not judged, because a ban of another rule held
	BansStarted uint64 `json:"bans_started"` // by the rule
	Keys        uint64 `json:"keys"`         // that it counts now
	Bans        uint64 `json:"bans"`         // that hold now
}

// Rules returns the rules in force.
func (c *Client) Rules(ctx context.Context) (RuleBook, error) {
	var out RuleBook
	err := c.get(ctx, "/v1/rules", nil, &out)
	return out, err
}
