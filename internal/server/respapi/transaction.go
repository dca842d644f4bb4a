package respapi

import (
	"slices"

	"github.com/lately-go/lately/api"
)

// execAbort is the code of EXEC after a command that could not be queued.
const execAbort api.Code = "EXECABORT"

// A transaction is the commands between MULTI and EXEC, validated when they arrive and
// executed in order by EXEC. Those of other connections may be executed between them.
type transaction struct {
	commands [][][]byte
	bytes    int  // taken from the budget
	failed   bool // a command was not queued: EXEC executes none
}

// queuedBytes returns the memory of a queued command.
func queuedBytes(args [][]byte) int {
	n := 24 * (1 + len(args)) // slices
	for _, arg := range args {
		n += len(arg)
	}
	return n
}

// add queues a copy of a command.
func (t *transaction) add(args [][]byte) {
	text, copied := slices.Concat(args...), make([][]byte, len(args))
	for i, arg := range args {
		n := len(arg)
		copied[i], text = text[:n:n], text[n:]
	}
	t.commands = append(t.commands, copied)
}

// queue queues a command for EXEC.
func (c *conn) queue(cmd *command, args [][]byte) error {
	t, n := c.multi, queuedBytes(args)
	switch {
	case cmd.notQueued:
		return refusal(api.Failed, "%s is not allowed in a transaction", cmd.name)
	case t.failed:
	case t.bytes+n > maxQueued:
		return refusal(api.Overload, "the transaction has more than 1 MiB of commands; send smaller ones")
	case !c.s.Budget.Take(n):
		return errBusy
	default:
		t.bytes += n
		t.add(args)
	}
	c.queued.Store(int32(len(t.commands)))
	c.w.Simple("QUEUED")
	return nil
}

// drop drops the commands of t, which may be nil, and gives their memory back.
func (c *conn) drop(t *transaction) {
	if t != nil {
		c.s.Budget.Give(t.bytes)
		t.commands, t.bytes = nil, 0
	}
}

// leave ends the transaction and returns it, or nil if there is none.
func (c *conn) leave() *transaction {
	t := c.multi
	c.multi = nil
	c.queued.Store(noTransaction)
	return t
}

// noTransaction is the number of queued commands without a transaction, as in CLIENT INFO.
const noTransaction = -1

func multi(c *conn, _ [][]byte) error {
	if c.multi != nil {
		return refusal(api.Failed, "MULTI calls can not be nested")
	}
	c.multi = new(transaction)
	c.queued.Store(0)
	c.w.OK()
	return nil
}

func discard(c *conn, _ [][]byte) error {
	t := c.leave()
	if t == nil {
		return refusal(api.Failed, "DISCARD without MULTI")
	}
	c.drop(t)
	c.w.OK()
	return nil
}

// execute executes what was queued and answers for each command. As in Redis, an error does
// not stop it.
func execute(c *conn, _ [][]byte) error {
	t := c.leave()
	switch {
	case t == nil:
		return refusal(api.Failed, "EXEC without MULTI")
	case t.failed:
		return refusal(execAbort, "Transaction discarded because of previous errors.")
	}
	defer c.drop(t)
	c.w.Array(len(t.commands))
	for _, args := range t.commands {
		cmd, err := c.s.commands.find(args)
		if err == nil {
			err = c.run(cmd, args)
		}
		if err != nil {
			c.refuse(err)
		}
		if c.w.Full() && c.w.Flush() != nil {
			c.over = true
			return nil
		}
	}
	c.settle() // before the memory of the commands is given back
	return nil
}

// watch is not supported: changes by other connections are not tracked.
func watch(*conn, [][]byte) error {
	return refusal(api.Failed, "WATCH is not supported: decisions are atomic by themselves, and keys cannot be watched for changes")
}

// unwatch does nothing. Some clients send it before they put a connection in a pool.
func unwatch(c *conn, _ [][]byte) error {
	c.w.OK()
	return nil
}
