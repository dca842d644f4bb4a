package respapi

import (
	"encoding/binary"
	"iter"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// maxQueued is how many bytes of commands a transaction may have. All transactions
// together are bounded by Config.Budget.
const maxQueued = 1 << 20

// execAbort is the code of the error that EXEC answers after a command that could not
// be queued.
const execAbort api.Code = "EXECABORT"

// A transaction is the commands between MULTI and EXEC. They are checked when they
// come and executed in their order by EXEC. Other connections' commands may come in
// between, so WATCH is not supported.
type transaction struct {
	commands int
	queue    []byte   // number of arguments, then each with its length in front
	args     [][]byte // memory for EXEC
	failed   bool     // a command was not queued: EXEC executes none
}

// room returns how many bytes a command takes in a queue, and no less.
func room(args [][]byte) int {
	n := binary.MaxVarintLen32
	for _, arg := range args {
		n += binary.MaxVarintLen32 + len(arg)
	}
	return n
}

// add queues a command.
func (t *transaction) add(args [][]byte) {
	t.commands++
	t.queue = binary.AppendUvarint(t.queue, uint64(len(args)))
	for _, arg := range args {
		t.queue = binary.AppendUvarint(t.queue, uint64(len(arg)))
		t.queue = append(t.queue, arg...)
	}
}

// all yields the arguments of the commands. They are good until the next ones.
func (t *transaction) all() iter.Seq[[][]byte] {
	return func(yield func([][]byte) bool) {
		rest := t.queue
		next := func() int {
			n, width := binary.Uvarint(rest)
			rest = rest[width:]
			return int(n)
		}
		for range t.commands {
			t.args = t.args[:0]
			for range next() {
				n := next()
				t.args = append(t.args, rest[:n:n])
				rest = rest[n:]
			}
			if !yield(t.args) {
				return
			}
		}
	}
}

// queue queues a command that is allowed now, for EXEC.
func (c *conn) queue(cmd *command, args [][]byte) error {
	t, n := c.multi, room(args)
	switch {
	case cmd.alone:
		return &engine.Error{Code: api.Failed, Message: cmd.name + " is not allowed in a transaction"}
	case t.failed:
	case len(t.queue)+n > maxQueued:
		return &engine.Error{Code: api.Overload, Message: "the transaction has more than 1 MiB of commands; send smaller ones"}
	case !c.s.config.Budget.Take(n):
		return errBusy
	default:
		c.reserved += n
		t.add(args)
	}
	c.queued.Store(int32(t.commands))
	c.w.Simple("QUEUED")
	return nil
}

// abort notes that a command was not queued, and gives back what was.
func (c *conn) abort() {
	c.release()
	c.multi.failed, c.multi.queue = true, nil
}

// release gives back the memory of what was queued.
func (c *conn) release() {
	if c.reserved > 0 {
		c.s.config.Budget.Give(c.reserved)
		c.reserved = 0
	}
}

// leave ends the transaction and returns it, or nil if there is none. Its memory is for
// release to give back.
func (c *conn) leave() *transaction {
	t := c.multi
	c.multi = nil
	c.queued.Store(noTransaction)
	return t
}

// noTransaction is the number of queued commands outside of one, as in CLIENT INFO.
const noTransaction = -1

func multi(c *conn, _ [][]byte) error {
	if c.multi != nil {
		return &engine.Error{Code: api.Failed, Message: "MULTI calls can not be nested"}
	}
	c.multi = new(transaction)
	c.queued.Store(0)
	c.w.OK()
	return nil
}

func discard(c *conn, _ [][]byte) error {
	defer c.release()
	if c.leave() == nil {
		return &engine.Error{Code: api.Failed, Message: "DISCARD without MULTI"}
	}
	c.w.OK()
	return nil
}

// execute executes what was queued. Each command answers in its place, with an error if it
// fails; the others are executed all the same, as in Redis.
func execute(c *conn, _ [][]byte) error {
	defer c.release()
	t := c.leave()
	switch {
	case t == nil:
		return &engine.Error{Code: api.Failed, Message: "EXEC without MULTI"}
	case t.failed:
		return &engine.Error{Code: execAbort, Message: "Transaction discarded because of previous errors."}
	}
	c.w.Array(t.commands)
	for args := range t.all() {
		cmd, err := c.s.commands.find(args)
		if err == nil {
			err = cmd.handle(c, args)
		}
		if err != nil {
			c.refuse(err)
		}
		if c.w.Full() && c.w.Flush() != nil {
			c.over = true
			return nil
		}
	}
	return nil
}

// watch is not supported: nothing here knows when a key of another connection changes.
func watch(*conn, [][]byte) error {
	return &engine.Error{Code: api.Failed, Message: "WATCH is not supported: decisions are atomic by themselves, and keys cannot be watched for changes"}
}

// unwatch has nothing to forget; some clients send it when they give back a connection.
func unwatch(c *conn, _ [][]byte) error {
	c.w.OK()
	return nil
}
