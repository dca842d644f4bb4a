package client

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Totals counts the decisions of a server by outcome. Each decision has one
// outcome, so the first four fields add up to all decisions.
type Totals struct {
	Allowed   uint64 `json:"allowed"`   // a rule judged the event and admitted it, or the allow list did
	Refused   uint64 `json:"refused"`   // by a limit
	Banned    uint64 `json:"banned"`    // refused by a ban
	Unmatched uint64 `json:"unmatched"` // admitted because no limit or ban rule matched
	Errors    uint64 `json:"errors"`    // requests without a decision
}

// RuleTotals counts the decisions of one rule by outcome. Each event that the rule
// judged has one of the first four outcomes.
type RuleTotals struct {
	Allowed uint64 `json:"allowed"`
	Refused uint64 `json:"refused"` // by a limit of the rule
	Banned  uint64 `json:"banned"`  // refused by a ban of the rule
	Shadow  uint64 `json:"shadow"`  // that the rule would have refused, were it not in shadow mode
	Bans    uint64 `json:"bans"`    // that began
}

// A Status is what a server says of itself.
type Status struct {
	Version     string
	Started     time.Time
	Uptime      time.Duration // in whole seconds
	EventTime   bool          // it judges by the times that events bring
	Totals      Totals        // since it started
	Memory      Memory
	Bans        BanTotals
	Subscribers int
	Rules       RulesStatus
	Storage     StorageStatus
	Role        string // what the Client's token may do: read, check or admin
}

// A Memory is the memory of a server, in bytes.
type Memory struct {
	Budget       int64  `json:"budget"`        // for limits and bans; 0 or less is none
	Bytes        int64  `json:"bytes"`         // of it in use
	Reserved     int64  `json:"reserved"`      // of it, kept free for bans by hand and for keys that do not fit
	CounterBytes int64  `json:"counter_bytes"` // of its counters
	Heap         uint64 `json:"heap"`
}

// A BanTotals is how many bans there are.
type BanTotals struct {
	Held       uint64 `json:"held"`       // that hold now
	Remembered uint64 `json:"remembered"` // that have ended, but make the next longer
	Refused    uint64 `json:"refused"`    // that found no room
}

// A RulesStatus is the state of a server's rules file.
type RulesStatus struct {
	File    string    `json:"file"` // "" if there is none
	Since   time.Time `json:"since"`
	Reloads uint64    `json:"reloads"`
	Error   string    `json:"error"` // why the last reload failed; "" if it did not
}

// A StorageStatus is how writing to a server's data directory goes. It is zero for a
// server without one.
type StorageStatus struct {
	JournalError     string `json:"journal_error"`     // why the ban journal cannot be written; "" if it can
	JournalFailures  uint64 `json:"journal_failures"`  // failed attempts
	SnapshotError    string `json:"snapshot_error"`    // why the last snapshot could not be written; "" if it could
	SnapshotFailures uint64 `json:"snapshot_failures"` // failed attempts
	MissingBans      uint64 `json:"missing_bans"`      // changes of bans that are not on disk at all
}

// UnmarshalJSON reads a status as servers write it.
func (s *Status) UnmarshalJSON(b []byte) error {
	var wire struct {
		Version     string        `json:"version"`
		Started     time.Time     `json:"started"`
		Uptime      float64       `json:"uptime_s"`
		EventTime   bool          `json:"event_time"`
		Totals      Totals        `json:"totals"`
		Memory      Memory        `json:"memory"`
		Bans        BanTotals     `json:"bans"`
		Subscribers int           `json:"subscribers"`
		Rules       RulesStatus   `json:"rules"`
		Storage     StorageStatus `json:"storage"`
		Role        string        `json:"role"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*s = Status{
		wire.Version, wire.Started, time.Duration(wire.Uptime) * time.Second, wire.EventTime, wire.Totals,
		wire.Memory, wire.Bans, wire.Subscribers, wire.Rules, wire.Storage, wire.Role,
	}
	return nil
}

// Status returns the state of the server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var out Status
	err := c.get(ctx, "/v1/status", nil, &out)
	return out, err
}

// A Rate is what was decided in a part of the past.
type Rate struct {
	From  time.Time             `json:"from"`
	To    time.Time             `json:"to"`
	All   Totals                `json:"all"`
	Rules map[string]RuleTotals `json:"rules,omitempty"` // if asked for
}

// Rates returns what was decided in the last span, from a second to a day, in at most
// points parts of equal width, oldest first. There are fewer when the server is
// younger.
func (c *Client) Rates(ctx context.Context, span time.Duration, points int, perRule bool) ([]Rate, error) {
	query := spanQuery(span)
	query.Set("points", strconv.Itoa(points))
	if perRule {
		query.Set("rules", "1")
	}
	var out struct {
		Rates []Rate `json:"rates"`
	}
	err := c.get(ctx, "/v1/rates", query, &out)
	return out.Rates, err
}

// A HotKey is a key that is hot under a rule.
type HotKey struct {
	Rule  string
	Key   []string // the values of its fields
	Since time.Time
	Until time.Time // how long it stays hot
}

// UnmarshalJSON reads a hot key as servers write it.
func (h *HotKey) UnmarshalJSON(b []byte) error {
	var wire struct {
		ruleKey
		Since time.Time `json:"since"`
		Until time.Time `json:"until"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*h = HotKey{wire.Rule, wire.values(), wire.Since, wire.Until}
	return nil
}

// Hot returns the keys that are hot, those that became so last first.
func (c *Client) Hot(ctx context.Context) ([]HotKey, error) {
	var out struct {
		Hot []HotKey `json:"hot"`
	}
	err := c.get(ctx, "/v1/hot", nil, &out)
	return out.Hot, err
}
