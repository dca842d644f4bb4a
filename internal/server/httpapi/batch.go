package httpapi

import "github.com/lately-go/lately/ratelimit"

// decideTogether appends the results of n items that are decided in one call of a store which
// is reached by a network.
func (c *call) decideTogether(n int, peek bool, next func(i int) (item, error)) {
	failed := make([]error, n) // of those that are not queued
	for i := range n {
		it, err := next(i)
		if err == nil {
			err = c.queue(&it, peek)
		}
		failed[i] = err
	}
	i := 0
	for d, err := range c.engine.Decide() {
		i = c.appendFailed(failed, i)
		c.appendResult(d, err)
		i++
	}
	c.appendFailed(failed, i)
}

// queue queues the decision about one item.
func (c *call) queue(it *item, peek bool) error {
	if err := c.prepare(it, peek); err != nil {
		return err
	}
	switch {
	case it.ev == nil:
		return c.engine.QueueTake(it.rule, it.cost, peek, it.key...)
	case it.at != nil:
		_, err := c.decide(it, peek) // an error: a store judges by its own clock
		return err
	}
	return c.engine.QueueCheck(it.ev, it.cost, peek)
}

// appendFailed appends the errors from the i-th on, up to an item that was queued. It returns
// the place of that.
func (c *call) appendFailed(failed []error, i int) int {
	for ; i < len(failed) && failed[i] != nil; i++ {
		c.appendResult(new(ratelimit.Decision), failed[i])
	}
	return i
}
