package respapi

import "github.com/lately-go/lately/internal/server/engine"

// run executes a command. If the limits are in a store that is reached by a network,
// decisions are queued, so that those of one read are made together: whoever writes a
// reply, or has the reader read more, calls settle first.
func (c *conn) run(cmd *command, args [][]byte) error {
	if cmd.queue == nil || !c.caller.Batches() {
		c.settle()
		return cmd.handle(c, args)
	}
	if c.caller.Queued() == engine.MaxBatch {
		c.settle()
	}
	return cmd.queue(c, args)
}

// settle makes the decisions that are queued, and answers with them in order.
func (c *conn) settle() {
	if c.caller.Queued() == 0 {
		return
	}
	for d, err := range c.caller.Decide() {
		if err = c.judged(d, err); err != nil {
			c.refuse(err)
		}
	}
}

// couldQueue counts err, if a decision could not be queued.
func (c *conn) couldQueue(err error) error {
	if err != nil {
		c.caller.Failed()
	}
	return err
}

func queueCheck(c *conn, args [][]byte) error {
	ev, cost, err := c.readEvent(args[1:])
	if err == nil {
		err = c.caller.QueueCheck(ev, cost, false)
	}
	return c.couldQueue(err)
}

// queueTake queues TAKE and PEEK.
func queueTake(c *conn, args [][]byte) error {
	cost, err := costOf(args)
	if err == nil {
		err = c.caller.QueueTake(view(args[1]), cost, isWord(args[0], "peek"), view(args[2]))
	}
	return c.couldQueue(err)
}
