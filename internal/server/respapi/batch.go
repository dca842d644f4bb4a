package respapi

import "github.com/lately-go/lately/internal/server/engine"

// run executes a command. Decisions are queued, so that those of one read are made together:
// whoever writes a reply, or has the reader read more, calls decide first.
func (c *conn) run(cmd *command, args [][]byte) error {
	if !cmd.decides || c.session.Queued() == engine.MaxBatch {
		c.decide()
	}
	return cmd.handle(c, args)
}

// decide makes the decisions that are queued, and answers with them in order.
func (c *conn) decide() {
	if c.session.Queued() == 0 {
		return
	}
	for d, err := range c.session.Decide() {
		if err = c.answerDecision(d, err); err != nil {
			c.refuse(err)
		}
	}
}
