package respapi

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/integer"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

// increx answers two integers: the number of the key, and what was added to it, which is 0
// if the sum is beyond a bound.
func increx(c *conn, args [][]byte) error {
	inc, err := readIncrement(args[2:])
	if err != nil {
		return err
	}
	value, added, err := c.caller.Increment(view(args[1]), &inc)
	if err != nil {
		return err
	}
	c.w.Array(2)
	c.w.Ints(value, added)
	return nil
}

// pttl answers how long a key of INCREX has, so that a client can say when to try again.
func pttl(c *conn, args [][]byte) error {
	left := c.caller.Left(view(args[1]))
	if left == 0 {
		c.w.Int(-2) // as Redis
		return nil
	}
	c.w.Int(engine.RoundUp(left, time.Millisecond))
	return nil
}

// An incrementOption is an option of INCREX that has a value, from least to most.
type incrementOption struct {
	name        string
	least, most int64
}

// incrementOptions are all of them. From incrementEnds on, they say when the key ends.
var incrementOptions = [...]incrementOption{
	{"BYINT", math.MinInt64, math.MaxInt64},
	{"LBOUND", math.MinInt64, math.MaxInt64},
	{"UBOUND", math.MinInt64, math.MaxInt64},
	{"EX", 1, int64(ratelimit.MaxSpan / time.Second)},
	{"PX", 1, ratelimit.MaxSpan.Milliseconds()},
	{"EXAT", 1, maxPeriod},
	{"PXAT", 1, maxPeriod * 1000},
}

const incrementEnds = 3

// readIncrement reads the options of INCREX.
func readIncrement(args [][]byte) (inc integer.Increment, err error) {
	inc = integer.Increment{By: 1, Least: math.MinInt64, Most: math.MaxInt64}
	var given [len(incrementOptions)]bool
	for len(args) > 0 {
		used := 1
		switch word := args[0]; {
		case isWord(word, "SATURATE"):
			inc.Saturate = true
		case isWord(word, "ENX"):
			inc.OnlyNew = true
		default:
			if err := readIncrementOption(&inc, &given, args); err != nil {
				return inc, err
			}
			used = 2
		}
		args = args[used:]
	}
	switch {
	case inc.OnlyNew && !slices.Contains(given[incrementEnds:], true):
		err = badArg("ENX: must have EX, PX, EXAT or PXAT")
	case inc.Least > inc.Most:
		err = badArg("LBOUND: %d: must be at most UBOUND, %d", inc.Least, inc.Most)
	}
	return inc, err
}

// readIncrementOption reads an option of INCREX and its value.
func readIncrementOption(inc *integer.Increment, given *[len(incrementOptions)]bool, args [][]byte) error {
	i := slices.IndexFunc(incrementOptions[:], func(o incrementOption) bool { return isWord(args[0], o.name) })
	switch {
	case isWord(args[0], "PERSIST"):
		return badArg("PERSIST: a key takes memory until it ends: must be EX, PX, EXAT or PXAT")
	case isWord(args[0], "BYFLOAT"):
		return badArg("BYFLOAT: numbers are integers: must be BYINT")
	case i < 0 || len(args) == 1:
		return badArg("'%.32s': must be BYINT, LBOUND, UBOUND, EX, PX, EXAT or PXAT with a value, SATURATE or ENX", args[0])
	case given[i] || i >= incrementEnds && slices.Contains(given[incrementEnds:], true):
		return badArg("%s: must be given once, and one of EX, PX, EXAT and PXAT", incrementOptions[i].name)
	}
	o := &incrementOptions[i]
	n, err := readInt(o.name, args[1], o.least, o.most)
	if err != nil {
		return err
	}
	given[i] = true
	switch o.name {
	case "BYINT":
		inc.By = n
	case "LBOUND":
		inc.Least = n
	case "UBOUND":
		inc.Most = n
	case "EX":
		inc.For = time.Duration(n) * time.Second
	case "PX":
		inc.For = time.Duration(n) * time.Millisecond
	case "EXAT":
		inc.Until = time.Unix(n, 0)
	case "PXAT":
		inc.Until = time.UnixMilli(n)
	}
	return nil
}
