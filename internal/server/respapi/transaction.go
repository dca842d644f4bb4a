package respapi

import (
	"slices"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
)

// transactionCommands queue others.
var transactionCommands = []command{
	{
		name: "multi", summary: "Begin a transaction: the commands that follow are queued and executed by EXEC",
		group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: multi,
	},
	{name: "exec", summary: "Execute the queued commands, and return an array of replies", group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: execute},
	{name: "discard", summary: "Drop the queued commands", group: groupTransactions, role: access.Read, least: 1, most: 1, immediate: true, handle: discard},
}

// execAbort is the code of EXEC after a command that could not be queued.
const execAbort api.Code = "EXECABORT"

// A transaction is the commands between MULTI and EXEC, validated when they arrive and
// executed in order by EXEC. Those of other connections may be executed between them.
type transaction struct {
	commands [][][]byte
	bytes    int   // taken from both budgets
	failed   error // of EXEC, which executes none; nil while all commands are queued
}

var errNotQueued = apierror.New(execAbort, "Transaction discarded because of previous errors.")

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
		return apierror.New(api.Failed, "%s is not allowed in a transaction", cmd.name)
	case t.failed != nil:
	case t.bytes+n > maxQueued:
		return apierror.New(api.Overload, "the transaction has more than 1 MiB of commands; send smaller ones")
	case !c.s.takeQueued(n):
		return errBusy
	default:
		t.bytes += n
		t.add(args)
	}
	c.w.Simple("QUEUED")
	return nil
}

// takeQueued takes memory of the budget for queued commands. All transactions together have at most
// half of it, so that there is always some for other requests.
func (s *Server) takeQueued(n int) bool {
	if !s.queues.Take(n) {
		return false
	}
	if s.Budget.Take(n) {
		return true
	}
	s.queues.Give(n)
	return false
}

// drop drops the commands of t, which may be nil, and gives their memory back.
func (c *conn) drop(t *transaction) {
	if t != nil {
		c.s.queues.Give(t.bytes)
		c.s.Budget.Give(t.bytes)
		t.commands, t.bytes = nil, 0
	}
}

// leave ends the transaction and returns it, or nil if there is none.
func (c *conn) leave() *transaction {
	t := c.multi
	c.multi = nil
	c.queuing.Store(0)
	return t
}

func multi(c *conn, _ [][]byte) error {
	if c.multi != nil {
		return apierror.New(api.Failed, "MULTI calls can not be nested")
	}
	c.multi = new(transaction)
	c.queuing.Store(c.s.tick.Load())
	c.w.OK()
	return nil
}

func discard(c *conn, _ [][]byte) error {
	t := c.leave()
	if t == nil {
		return apierror.New(api.Failed, "DISCARD without MULTI")
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
		return apierror.New(api.Failed, "EXEC without MULTI")
	case t.failed != nil:
		return t.failed
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
	c.decide() // before the memory of the commands is given back
	return nil
}
