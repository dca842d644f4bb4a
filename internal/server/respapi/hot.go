package respapi

import (
	"math"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// listHot answers with the keys that are hot.
func listHot(c *conn, args [][]byte) error {
	rule := ""
	if len(args) > 1 {
		rule = string(args[1])
	}
	keys, err := c.s.Engine.Hot(rule)
	if err != nil {
		return err
	}
	bytes := 64
	for i := range keys {
		bytes += 128 + len(keys[i].Rule)
		for _, v := range keys[i].Values() {
			bytes += len(v) + 1
		}
	}
	if !c.w.Reserve(bytes) {
		return errBusy
	}
	c.w.Array(len(keys))
	for i := range keys {
		c.writeHot(&keys[i])
	}
	return nil
}

func (c *conn) writeHot(k *api.HotKey) {
	c.w.Array(7)
	c.strings(k.Rule, engine.KeyText(k.Values()))
	hi := int64(-1)
	if k.Hi > 0 && k.Hi <= math.MaxInt64 {
		hi = int64(k.Hi)
	}
	c.w.Ints(engine.EpochMillis(k.Since), engine.EpochMillis(k.Until), wireCount(k.Lo), hi, wireCount(k.Changed))
}
