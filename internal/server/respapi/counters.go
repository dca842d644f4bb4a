package respapi

import (
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/keys"
)

// counterCommands count.
var counterCommands = []command{
	{
		name: "add", usage: "counter key [n]", summary: "Add to a key of a counter; a counter that does not exist is created",
		group: groupCounters, role: access.Check, least: 3, most: 4, key: 2, write: true, handle: add,
	},
	{
		name: "sum", usage: "counter key [SPAN duration]", summary: "A key's count over a span that ends now; the counter's longest if none is given",
		group: groupCounters, role: access.Read, least: 3, most: 5, key: 2, handle: count,
	},
	{
		name: "rate", usage: "counter key [SPAN duration]", summary: "A key's events a second over a span that ends now",
		group: groupCounters, role: access.Read, least: 3, most: 5, key: 2, handle: count,
	},
	{
		name: "top", usage: "counter n [SPAN duration]", summary: "The n keys with the largest counts, each followed by its count",
		group: groupCounters, role: access.Read, least: 3, most: 5, handle: top,
	},
}

func add(c *conn, args [][]byte) error {
	n := int64(1)
	if len(args) == 4 {
		var err error
		if n, err = readInt("n", args[3], 1, engine.MaxCost); err != nil {
			return err
		}
	}
	if err := c.session.Add(keys.View(args[1]), uint64(n), keys.View(args[2])); err != nil {
		return err
	}
	c.w.OK()
	return nil
}

// spanOf reads what may follow a counter and a key: SPAN duration. 0 means none.
func spanOf(args [][]byte) (time.Duration, error) {
	value, err := optional(args, "span", "SPAN duration")
	if value == nil {
		return 0, err
	}
	return readDuration("SPAN", value)
}

// count is SUM and RATE.
func count(c *conn, args [][]byte) error {
	span, err := spanOf(args)
	if err != nil {
		return err
	}
	count, perSecond, err := c.session.Count(keys.View(args[1]), span, keys.View(args[2]))
	switch {
	case err != nil:
	case isWord(args[0], "rate"):
		c.w.Double(perSecond)
	default:
		c.w.Int(wireCount(count.Lo))
	}
	return err
}

func top(c *conn, args [][]byte) error {
	n, err := readInt("n", args[2], 1, maxListed)
	if err != nil {
		return err
	}
	span, err := spanOf(args)
	if err != nil {
		return err
	}
	most, err := c.s.Engine.Top(keys.View(args[1]), int(n), span, keys.Filter{})
	if err != nil {
		return err
	}
	c.w.Array(2 * len(most))
	for _, k := range most {
		c.w.BulkString(keys.Text(k.Values()))
		c.w.Int(wireCount(k.Estimate))
	}
	return nil
}
