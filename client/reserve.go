package client

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/ratelimit"
)

// A Reservation is an event whose cost becomes known later: tokens of an answer, bytes sent. Charge
// an estimate with Reserve, and correct it to the actual cost with Settle. If it is not settled in
// time, for example because the caller crashed, the estimate stays charged.
type Reservation struct {
	// Decision is the decision of Take. If it is not Allowed, nothing was charged, and ID is
	// "".
	Decision ratelimit.Decision

	// ID settles the reservation: at this server, at any that shares its store, and after a restart.
	ID string

	node uint64 // hash of the key, by which a Fleet finds its node
}

// Reserve counts an event with this key under one rule, at an estimated cost, and returns the decision with an ID for Settle,
// which must be called within hold: up to a day, 0 means a minute. Cost 0 means 1.
func (c *Client) Reserve(ctx context.Context, rule string, cost uint64, hold time.Duration, key ...string) (Reservation, error) {
	return c.ReserveLimit(ctx, rule, 0, cost, hold, key...)
}

// ReserveLimit is Reserve with the event's own limit, see [Client.TakeLimit].
func (c *Client) ReserveLimit(ctx context.Context, rule string, limit, cost uint64, hold time.Duration, key ...string) (Reservation, error) {
	return c.reserve(ctx, api.ReserveTake{TakeItem: takeItem(rule, key, limit, cost), For: forOf(hold)})
}

// ReserveEvent is Reserve for an event under every rule that matches it, as Check counts it. One ID settles all.
func (c *Client) ReserveEvent(ctx context.Context, event map[string]string, cost uint64, hold time.Duration) (Reservation, error) {
	return c.reserve(ctx, api.ReserveEvent{CheckItem: checkItem(event, cost), For: forOf(hold)})
}

func (c *Client) reserve(ctx context.Context, in any) (Reservation, error) {
	d, id, err := c.judge(ctx, "/v1/reserve", in)
	return Reservation{Decision: d, ID: id}, err
}

// forOf returns how long a reservation can be settled, or nil for the default of the server.
func forOf(hold time.Duration) *api.Millis {
	if hold == 0 {
		return nil
	}
	return new(api.MillisOf(hold))
}

// Settle corrects the cost of a reservation to the actual cost: an excess is given back, and a
// shortage is charged, even above the limit. Under an in-flight rule it ends the event. It returns
// false, and changes nothing, if the reservation was settled before: repeat a Settle whose answer
// was lost. The code of an *[Error] is [api.Expired] after hold, and [api.BadID] for an ID that the
// server has not made.
func (c *Client) Settle(ctx context.Context, id string, cost uint64) (bool, error) {
	out, err := post[api.Settled](ctx, c, "/v1/settle", api.Settlement{ID: id, Cost: &cost})
	return out.Settled, err
}

// Charge counts a cost for this key under one rule, even above the limit. It is never refused:
// later events are. For cost 0 nothing is sent.
func (c *Client) Charge(ctx context.Context, rule string, cost uint64, key ...string) error {
	if cost == 0 {
		return nil
	}
	_, err := post[api.Charged](ctx, c, "/v1/charge", takeItem(rule, key, 0, cost))
	return err
}

// Reserve is [Client.Reserve] at the node of the key.
func (f *Fleet) Reserve(ctx context.Context, rule string, cost uint64, hold time.Duration, key ...string) (Reservation, error) {
	return f.ReserveLimit(ctx, rule, 0, cost, hold, key...)
}

// ReserveLimit is [Client.ReserveLimit] at the node of the key.
func (f *Fleet) ReserveLimit(ctx context.Context, rule string, limit, cost uint64, hold time.Duration, key ...string) (Reservation, error) {
	text, err := keyText(key)
	if err != nil {
		return Reservation{}, err
	}
	args := []string{"RESERVE", rule, text, "COST", strconv.FormatUint(max(cost, 1), 10)}
	if hold != 0 {
		args = append(args, "FOR", strconv.FormatInt(int64(api.MillisOf(hold)), 10))
	}
	if limit > 0 {
		args = append(args, "LIMIT", strconv.FormatUint(limit, 10))
	}
	node := hashOf(rule, text)
	a, err := f.ask(ctx, parseReservation, rule, node, args...)
	return Reservation{Decision: a.decision, ID: a.id, node: node}, err
}

// Settle is [Client.Settle] for a reservation of this Fleet. If its node is down, and does not
// share a store with the others, the error is an *[Error] with code [api.BadID]: the reservation is
// lost with the node.
func (f *Fleet) Settle(ctx context.Context, r Reservation, cost uint64) (bool, error) {
	if r.ID == "" {
		return false, errNoID
	}
	a, err := f.ask(ctx, parseInt, "", r.node, "SETTLE", r.ID, "COST", strconv.FormatUint(cost, 10))
	return a.n == 1, err
}

var errNoID = errors.New("reservation: without ID: must be one that was allowed")

// Charge is [Client.Charge] at the node of the key.
func (f *Fleet) Charge(ctx context.Context, rule string, cost uint64, key ...string) error {
	if cost == 0 {
		return nil
	}
	_, err := f.keyed(ctx, parseOK, "CHARGE", rule, key, "COST", strconv.FormatUint(cost, 10))
	return err
}

// parseReservation reads the answer of RESERVE: that of TAKE with a delay, and an id.
func parseReservation(rule string, reply []resp.Value) (answer, error) {
	if len(reply) != 10 || reply[0].Kind != resp.KindArray || reply[9].Kind != resp.KindBulk {
		return answer{}, errReply
	}
	a, err := parseDecision(rule, reply[:9])
	a.id = string(reply[9].Text)
	return a, err
}
