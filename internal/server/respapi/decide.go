package respapi

import (
	"cmp"
	"math"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// decisionCommands judge events and keys.
var decisionCommands = []command{
	{
		name: "check", usage: "field value [field value ...] [COST n] [RESERVE ms] [OUTCOME ms]", summary: "Count an event and judge it under all rules that match it; with RESERVE, reserve the cost; with OUTCOME, return an id for OUTCOME",
		group: groupDecisions, role: access.Check, least: 3, write: true, decides: true, handle: check,
	},
	{
		name: "outcome", usage: "[id] field value [field value ...] [COST n]", summary: "Report the answer to a request: its status, size or duration, with the id of the decision or the fields of the request. Rules with these count it",
		group: groupDecisions, role: access.Check, least: 3, write: true, decides: true, handle: check,
	},
	{
		name: "take", usage: "rule key [COST n] [LIMIT n]", summary: "Count an event of a key and judge it under one rule, by the rule's limit or the one in the command",
		group: groupDecisions, role: access.Check, least: 3, most: 7, key: 2, write: true, decides: true, handle: take,
	},
	{
		name: "peek", usage: "rule key [COST n] [LIMIT n]", summary: "Return the decision that TAKE would make, and change nothing",
		group: groupDecisions, role: access.Check, least: 3, most: 7, key: 2, decides: true, handle: take,
	},
	{
		name: "charge", usage: "rule key [COST n]", summary: "Count a cost of a key, also beyond the limit; nothing is refused",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, handle: charge,
	},
	{
		name: "reserve", usage: "rule key [COST n] [FOR ms] [LIMIT n]", summary: "Count an event as TAKE does, at an estimated cost; returns the decision and an id for SETTLE",
		group: groupDecisions, role: access.Check, least: 3, most: 9, key: 2, write: true, decides: true, handle: reserve,
	},
	{
		name: "settle", usage: "id COST n", summary: "Correct the cost of a reservation; returns 1, or 0 if it was settled before",
		group: groupDecisions, role: access.Check, least: 4, most: 4, write: true, handle: settle,
	},
	{
		name: "refund", usage: "rule key [COST n]", summary: "Give back units of a key under a rule, the oldest first; returns their number",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, handle: giveBack,
	},
	{
		name: "release", usage: "rule key [COST n]", summary: "End events in progress of a key under an in-flight rule; returns their number",
		group: groupDecisions, role: access.Check, least: 3, most: 5, key: 2, write: true, handle: giveBack,
	},
	{
		name: "cl.throttle", usage: "key max_burst count period [quantity]", summary: "Judge an event of a key by the limit in the command, as redis-cell does",
		group: groupDecisions, role: access.Check, least: 5, most: 6, key: 1, write: true, handle: throttle,
	},
	{
		name: "del", usage: "key [key ...]", summary: "Reset keys of CL.THROTTLE; returns their number",
		group: groupDecisions, role: access.Check, least: 2, key: 1, write: true, handle: del,
	},
	{
		name: "reset", usage: "[rule key]", summary: "Delete the counts of a key under a rule, but not its bans; without arguments, reset the connection",
		group: groupDecisions, argsRole: access.Admin, least: 1, most: 3, key: 2, write: true, whileSubscribed: true, immediate: true, handle: reset,
	},
}

// check queues the decision about an event, or its outcome.
func check(c *conn, args [][]byte) error {
	outcome, byID := isWord(args[0], "outcome"), len(args)%2 == 0
	event := args[1:]
	if outcome && byID {
		event = args[2:]
	}
	ev, terms := c.session.Event(), engine.Terms{Outcome: outcome}
	cost, err := fillEvent(ev, event, &terms)
	if outcome && terms.Hold+terms.Report > 0 {
		err = badArg("RESERVE, OUTCOME: must be left out of an outcome, which counts what has ended")
	}
	if outcome && byID {
		terms.ByID, terms.ID = true, keys.View(args[1])
	}
	if err == nil {
		err = c.session.Prepare(ev)
	}
	if err == nil {
		err = c.session.QueueCheck(ev, cost, terms)
	}
	return c.couldQueue(err)
}

// fillEvent sets the fields of CHECK in ev, and its options in terms, and returns the cost.
func fillEvent(ev *match.Event, args [][]byte, terms *engine.Terms) (cost uint64, err error) {
	if len(args)%2 != 0 {
		return 0, badArg("field '%.64s' has no value", args[len(args)-1])
	}
	fields := 0
	for i := 0; i < len(args) && err == nil; i += 2 {
		name, value := args[i], args[i+1]
		switch {
		case isWord(name, "cost"):
			cost, err = once("COST", cost, value, readCost)
		case isWord(name, "reserve"):
			terms.Hold, err = once("RESERVE", terms.Hold, value, readHold)
		case isWord(name, "outcome"):
			terms.Report, err = once("OUTCOME", terms.Report, value, readHold)
		case len(name) == 0:
			err = badArg("field %d has no name", fields+1)
		default:
			if fields++; fields <= maxFields {
				ev.SetNamed(keys.View(name), value)
			}
		}
	}
	if err == nil && (fields == 0 || fields > maxFields) {
		err = badArg("event has %d fields: must be 1 to %d", fields, maxFields)
	}
	return max(cost, 1), err
}

// once reads the value of an option, which was before if it is not 0.
func once[T time.Duration | uint64](what string, before T, value []byte, read func(what string, value []byte) (T, error)) (T, error) {
	if before != 0 {
		return 0, badArg("%s: must be given once", what)
	}
	return read(what, value)
}

// readHold reads for how long an id is valid.
func readHold(what string, b []byte) (time.Duration, error) {
	n, err := readInt(what, b, 1, reservations.MaxHold.Milliseconds())
	return time.Duration(n) * time.Millisecond, err
}

// readCost reads a cost or another amount.
func readCost(what string, b []byte) (uint64, error) {
	n, err := readInt(what, b, 1, engine.MaxCost)
	return uint64(n), err
}

// costOf reads what may follow a rule and a key: COST n.
func costOf(args [][]byte) (uint64, error) {
	value, err := optional(args, "cost", "COST n")
	if value == nil {
		return 1, err
	}
	return readCost("COST", value)
}

// termsOf reads what may follow the rule and the key of TAKE, PEEK and RESERVE, each once: COST n and LIMIT n, and FOR ms for
// a reservation.
func termsOf(args [][]byte, terms engine.Terms) (cost uint64, _ engine.Terms, err error) {
	reserves, hold := terms.Hold > 0, time.Duration(0)
	for args = args[3:]; len(args) > 0 && err == nil; args = args[2:] {
		switch {
		case len(args) > 1 && isWord(args[0], "cost") && cost == 0:
			cost, err = readCost("COST", args[1])
		case len(args) > 1 && isWord(args[0], "limit") && terms.Limit == 0:
			terms.Limit, err = readCost("LIMIT", args[1])
		case len(args) > 1 && isWord(args[0], "for") && reserves && hold == 0:
			hold, err = readHold("FOR", args[1])
		case reserves:
			return 0, terms, badArg("'%.32s': must be COST n, LIMIT n or FOR ms, each once", args[0])
		default:
			return 0, terms, badArg("'%.32s': must be COST n or LIMIT n, each once", args[0])
		}
	}
	terms.Hold = cmp.Or(hold, terms.Hold)
	return max(cost, 1), terms, err
}

// take queues the decision of TAKE or PEEK.
func take(c *conn, args [][]byte) error {
	return c.queueTake(args, engine.Terms{Peek: isWord(args[0], "peek")})
}

// reserve queues the decision of RESERVE.
func reserve(c *conn, args [][]byte) error {
	return c.queueTake(args, engine.Terms{Hold: engine.DefaultHold})
}

func (c *conn) queueTake(args [][]byte, terms engine.Terms) error {
	cost, terms, err := termsOf(args, terms)
	if err == nil {
		err = c.session.QueueTake(keys.View(args[1]), cost, terms, keys.View(args[2]))
	}
	return c.couldQueue(err)
}

// charge counts a cost after the fact.
func charge(c *conn, args [][]byte) error {
	cost, err := costOf(args)
	if err == nil {
		err = c.session.Charge(keys.View(args[1]), cost, keys.View(args[2]))
	}
	if err == nil {
		c.w.OK()
	}
	return err
}

// settle corrects the charge of a reservation.
func settle(c *conn, args [][]byte) error {
	if !isWord(args[2], "cost") {
		return badArg("'%.32s': must be COST n", args[2])
	}
	n, err := readInt("COST", args[3], 0, engine.MaxCost)
	if err != nil {
		return err
	}
	settled, err := c.session.Settle(keys.View(args[1]), uint64(n))
	if err == nil {
		c.w.Int(oneIf(settled))
	}
	return err
}

// couldQueue counts err, if a decision could not be queued.
func (c *conn) couldQueue(err error) error {
	if err != nil {
		c.session.Failed()
	}
	return err
}

// answerDecision answers with a decision, or counts the error.
func (c *conn) answerDecision(d *ratelimit.Decision, err error) error {
	if err != nil {
		c.session.Failed()
		return err
	}
	delay := int64(0)
	if d.Allowed {
		delay = millis(d.Delay)
	}
	id, asked := c.session.ID()
	switch {
	case d.Missing != "":
		c.w.Array(10)
	case asked:
		c.w.Array(9)
	default:
		c.w.Array(7 + int(min(delay, 1)))
	}
	c.w.Ints(oneIf(d.Allowed), wireCount(d.Limit), wireCount(d.Remaining), millis(d.RetryAfter), millis(d.ResetAfter))
	c.w.BulkString(d.Rule)
	c.w.Int(engine.EpochMillis(d.BannedUntil))
	if delay > 0 || asked || d.Missing != "" {
		c.w.Int(delay)
	}
	if asked || d.Missing != "" {
		c.w.Bulk(id)
	}
	if d.Missing != "" {
		c.w.BulkString(d.Missing)
	}
	return nil
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// wireCount returns n as an integer of the protocol.
func wireCount(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// millis returns d in milliseconds, rounded up, and -1 for [ratelimit.Never].
func millis(d time.Duration) int64 { return int64(api.MillisOf(d)) }

// giveBack is REFUND and RELEASE: it answers how much was given back to a key.
func giveBack(c *conn, args [][]byte) error {
	n, err := costOf(args)
	switch {
	case err != nil:
	case isWord(args[0], "release"):
		n, err = c.session.Release(keys.View(args[1]), n, keys.View(args[2]))
	default:
		n, err = c.session.Refund(keys.View(args[1]), n, keys.View(args[2]))
	}
	if err == nil {
		c.w.Int(wireCount(n))
	}
	return err
}

// reset is the RESET of Redis without arguments, and otherwise resets a key.
func reset(c *conn, args [][]byte) error {
	switch len(args) {
	case 1:
		c.reset()
		return nil
	case 2:
		return badArg("wrong number of arguments for 'reset': RESET rule key, or RESET alone")
	}
	if err := c.session.Reset(keys.View(args[1]), keys.View(args[2])); err != nil {
		return err
	}
	c.audit("key reset", "rule", string(args[1]), "key", keys.Text(c.s.Engine.Listed(string(args[1]), []string{string(args[2])})))
	c.w.OK()
	return nil
}

// maxPeriod is the longest period, in seconds.
const maxPeriod = int64(limit.MaxSpan / time.Second)

// throttle answers five integers: limited, limit, remaining, retry-after or -1, and
// reset-after. Both are seconds, rounded up.
func throttle(c *conn, args [][]byte) error {
	numbers := [4]int64{3: 1}
	for i, arg := range args[2:] {
		var err error
		if numbers[i], err = readInt(throttleArgs[i].name, arg, throttleArgs[i].least, throttleArgs[i].most); err != nil {
			return err
		}
	}
	period := time.Duration(numbers[2]) * time.Second
	d, err := c.session.Throttle(keys.View(args[1]), uint64(numbers[0]), uint64(numbers[1]), period, uint64(numbers[3]))
	if err != nil {
		return err
	}
	if d.Allowed {
		d.RetryAfter = ratelimit.Never // as of redis-cell
	}
	c.w.Array(5)
	c.w.Ints(oneIf(!d.Allowed), wireCount(d.Limit), wireCount(d.Remaining),
		seconds(d.RetryAfter), seconds(d.ResetAfter))
	return nil
}

// seconds returns d in seconds, rounded up, and -1 for [ratelimit.Never].
func seconds(d time.Duration) int64 {
	if ms := millis(d); ms >= 0 {
		return (ms + 999) / 1000
	}
	return -1
}

// throttleArgs are the numbers that follow the key of CL.THROTTLE.
var throttleArgs = [4]struct {
	name        string
	least, most int64
}{
	{"max_burst", 0, limit.MaxN - 1},
	{"count", 1, limit.MaxN - 1},
	{"period", 1, maxPeriod},
	{"quantity", 0, engine.MaxCost},
}

// del resets keys of CL.THROTTLE, as clients of redis-cell do it.
func del(c *conn, args [][]byte) error {
	n := int64(0)
	for _, key := range args[1:] {
		if c.session.Delete(keys.View(key)) {
			n++
		}
	}
	c.w.Int(n)
	return nil
}

// audit logs who has changed what.
func (c *conn) audit(what string, args ...any) {
	c.s.Log.Info(what, append(args, "by", c.who.Name, "role", c.who.Role.String(), "peer", access.PeerName(c.peer))...)
}
