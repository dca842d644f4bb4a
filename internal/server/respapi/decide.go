package respapi

import (
	"math"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// maxAt is the end of the year 2261, near the end of nanoseconds in 64 bits.
const maxAt = 9_214_646_400_000

// An eventArgs is the event that the arguments of CHECK are, without its fields.
type eventArgs struct {
	cost uint64
	at   int64
	past bool // there is AT
}

func check(c *conn, args [][]byte) error {
	ev := c.caller.Event()
	a := eventArgs{cost: 1}
	if err := a.read(ev, args[1:]); err != nil {
		c.caller.Failed()
		return err
	}
	if err := c.caller.Prepare(ev); err != nil {
		c.caller.Failed()
		return err
	}
	if !a.past {
		d, err := c.caller.Check(ev, a.cost)
		return c.judged(&d, err)
	}
	if !c.who.Role.May(access.Admin) {
		c.s.unauthorized.Add(1)
		return needsRole("AT, which is for replaying a log,", access.Admin)
	}
	d, err := c.caller.CheckAt(time.UnixMilli(a.at), ev, a.cost)
	return c.judged(&d, err)
}

// read fills in ev with fields and values, and a with what is none of them.
func (a *eventArgs) read(ev *match.Event, args [][]byte) error {
	if len(args)%2 != 0 {
		return badArg("field '%.64s' has no value", args[len(args)-1])
	}
	if len(args) > 2*(maxFields+2) {
		return badArg("event has %d fields; allowed are %d", len(args)/2, maxFields)
	}
	fields, costs := 0, 0
	for i := 0; i < len(args); i += 2 {
		name, value := args[i], args[i+1]
		var err error
		switch {
		case isWord(name, "cost"):
			costs++
			a.cost, err = readCost(value)
		case isWord(name, "at"):
			if a.past {
				return badArg("AT is there twice")
			}
			a.at, err = readInt("AT", value, 0, maxAt)
			a.past = true
		case len(name) == 0:
			return badArg("field %d has no name", fields+1)
		default:
			fields++
			ev.SetNamed(view(name), value)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case costs > 1:
		return badArg("COST is there twice")
	case fields == 0 || fields > maxFields:
		return badArg("event has %d fields; allowed are 1 to %d", fields, maxFields)
	}
	return nil
}

// readCost reads a cost.
func readCost(b []byte) (uint64, error) {
	n, err := readInt("COST", b, 1, engine.MaxCost)
	return uint64(n), err
}

// readInt reads an integer from least to most.
func readInt(what string, b []byte, least, most int64) (int64, error) {
	n, ok := resp.ParseInt(b)
	if !ok || n < least || n > most {
		return 0, badArg("%s is '%.32s'; allowed is %d to %d", what, b, least, most)
	}
	return n, nil
}

// costOf reads what may stand behind rule and key: COST n.
func costOf(args [][]byte) (uint64, error) {
	if len(args) == 3 {
		return 1, nil
	}
	if len(args) != 5 || !isWord(args[3], "cost") {
		return 0, badArg("'%.32s' stands behind the key; allowed is COST n", args[3])
	}
	return readCost(args[4])
}

func take(c *conn, args [][]byte) error {
	cost, err := costOf(args)
	if err != nil {
		c.caller.Failed()
		return err
	}
	d, err := c.caller.Take(view(args[1]), view(args[2]), cost)
	return c.judged(&d, err)
}

func peek(c *conn, args [][]byte) error {
	cost, err := costOf(args)
	if err != nil {
		return err
	}
	d, err := c.caller.PeekRule(view(args[1]), view(args[2]), cost)
	if err != nil {
		return err
	}
	c.decided(&d)
	return nil
}

// judged answers with the decision of an event that was to be counted, or counts
// why there is none.
func (c *conn) judged(d *ratelimit.Decision, err error) error {
	if err != nil {
		c.caller.Failed()
		return err
	}
	c.decided(d)
	return nil
}

// decided answers with a decision.
func (c *conn) decided(d *ratelimit.Decision) {
	c.w.Decision(&resp.Decision{
		Allowed: d.Allowed, Limit: wireCount(d.Limit), Remaining: wireCount(d.Remaining), RetryAfter: millis(d.RetryAfter),
		ResetAfter: millis(d.ResetAfter), Rule: d.Rule, BannedUntil: engine.EpochMillis(d.BannedUntil),
		Delay: millis(d.Delay),
	})
}

// wireCount returns n as the wire can have it.
func wireCount(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// millis returns d in milliseconds, rounded up, and -1 for [ratelimit.Never].
func millis(d time.Duration) int64 { return engine.RoundUp(d, time.Millisecond) }

func refund(c *conn, args [][]byte) error {
	n, err := costOf(args)
	if err != nil {
		return err
	}
	n, err = c.caller.Refund(view(args[1]), view(args[2]), n)
	if err != nil {
		return err
	}
	c.w.Int(wireCount(n))
	return nil
}

// release answers how many events under way it has ended.
func release(c *conn, args [][]byte) error {
	n, err := costOf(args)
	if err != nil {
		return err
	}
	n, err = c.caller.Release(view(args[1]), view(args[2]), n)
	if err != nil {
		return err
	}
	c.w.Int(wireCount(n))
	return nil
}

// reset is Redis' RESET without arguments, and otherwise ours.
func reset(c *conn, args [][]byte) error {
	switch len(args) {
	case 1:
		return c.anew()
	case 2:
		return badArg("wrong number of arguments for 'reset': RESET rule key, or RESET alone")
	}
	if err := c.caller.Reset(view(args[1]), view(args[2])); err != nil {
		return err
	}
	c.audit("key reset", "rule", string(args[1]), "key", string(args[2]))
	c.w.OK()
	return nil
}

// maxPeriod keeps a number of seconds within a time.Duration.
const maxPeriod = int64(math.MaxInt64 / time.Second)

// throttle answers five integers: limited, limit, remaining, and in seconds, rounded
// up, retry-after or -1, and reset-after.
func throttle(c *conn, args [][]byte) error {
	burst, err := readInt("max_burst", args[2], 0, ratelimit.MaxThrottle)
	if err != nil {
		return err
	}
	count, err := readInt("count", args[3], 1, ratelimit.MaxThrottle)
	if err != nil {
		return err
	}
	period, err := readInt("period", args[4], 1, maxPeriod)
	if err != nil {
		return err
	}
	quantity := int64(1)
	if len(args) == 6 {
		if quantity, err = readInt("quantity", args[5], 0, engine.MaxCost); err != nil {
			return err
		}
	}
	d, err := c.caller.Throttle(view(args[1]), uint64(burst), uint64(count), time.Duration(period)*time.Second, uint64(quantity))
	if err != nil {
		return err
	}
	c.w.Array(5)
	limited := int64(0)
	if d.Limited {
		limited = 1
	}
	c.w.Int(limited)
	c.w.Int(wireCount(d.Limit))
	c.w.Int(wireCount(d.Remaining))
	c.w.Int(engine.RoundUp(d.RetryAfter, time.Second))
	c.w.Int(engine.RoundUp(d.ResetAfter, time.Second))
	return nil
}

// del resets keys of CL.THROTTLE, as clients of redis-cell do it.
func del(c *conn, args [][]byte) error {
	n := int64(0)
	for _, key := range args[1:] {
		found, err := c.caller.Unthrottle(view(key))
		if err != nil {
			return err
		}
		if found {
			n++
		}
	}
	c.w.Int(n)
	return nil
}

// audit notes who has changed what.
func (c *conn) audit(what string, args ...any) {
	c.s.log.Info(what, append(args, "by", c.who.Name, "role", c.who.Role.String(), "peer", c.peer.String())...)
}
