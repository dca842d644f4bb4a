package respapi

import "github.com/lately-go/lately/internal/server/engine"

// run executes a command. Decisions are queued, so that those of one read are made together:
// whoever writes a reply, or has the reader read more, calls settle first.
func (c *conn) run(cmd *command, args [][]byte) error {
	if !cmd.decides || c.caller.Queued() == engine.MaxBatch {
		c.settle()
	}
	return cmd.handle(c, args)
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
