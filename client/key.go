package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A KeyReport is what a server knows of one key.
type KeyReport struct {
	Fields   []string
	Key      []string // as the rules count it
	Counters []KeyWindow
	Rules    []KeyDecision
	Bans     []Ban
}

// A KeyWindow is what one window of a counter holds of a key: the true count lies in
// [Lo, Hi].
type KeyWindow struct {
	Counter string
	Span    time.Duration
	Lo, Hi  uint64
	Slots   []Slot // oldest first
}

// A Slot is one slot of a window.
type Slot struct {
	Start time.Time `json:"start"`
	Count uint64    `json:"count"`
}

// A KeyDecision is what a rule would say of the key's next event.
type KeyDecision struct {
	Rule     string
	Decision ratelimit.Decision
}

// UnmarshalJSON reads a report as servers write it.
func (r *KeyReport) UnmarshalJSON(b []byte) error {
	var wire struct {
		Fields []string `json:"fields"`
		keyText
		Counters []struct {
			Counter string `json:"counter"`
			Span    int64  `json:"span_ms"`
			Lo      uint64 `json:"lo"`
			Hi      uint64 `json:"hi"`
			Slots   []Slot `json:"slots"`
		} `json:"counters"`
		Rules []struct {
			Rule     string   `json:"rule"`
			Decision decision `json:"decision"`
		} `json:"rules"`
		Bans []Ban `json:"bans"`
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	*r = KeyReport{Fields: wire.Fields, Key: wire.values(), Bans: wire.Bans}
	for _, w := range wire.Counters {
		r.Counters = append(r.Counters, KeyWindow{w.Counter, milliseconds(w.Span), w.Lo, w.Hi, w.Slots})
	}
	for _, d := range wire.Rules {
		r.Rules = append(r.Rules, KeyDecision{d.Rule, d.Decision.decision()})
	}
	return nil
}

// Key returns what the server knows of the key that has these values in these fields:
// as many of one as of the other, in the order of a rule's or counter's key.
func (c *Client) Key(ctx context.Context, fields, values []string) (KeyReport, error) {
	if len(fields) == 0 || len(fields) != len(values) {
		return KeyReport{}, fmt.Errorf("there are %d fields and %d values; allowed is as many of one as of the other, from 1", len(fields), len(values))
	}
	var out KeyReport
	err := c.get(ctx, "/v1/key", url.Values{"field": fields, "value": values}, &out)
	return out, err
}
