package respapi

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// A conn is one connection. What is not said to be for others belongs to its
// goroutine, serve.
type conn struct {
	s      *Server
	patrol *patrol
	raw    net.Conn // closed by anyone
	net    net.Conn // raw, or TLS over it
	peer   netip.Addr
	id     int64
	since  time.Time
	born   uint32 // round

	r      *resp.Reader
	w      *resp.Writer // while feed is set: under mu
	caller *engine.Caller

	who      access.Identity
	logins   int           // unknown tokens
	greeted  bool          // has asked something
	begun    bool          // a part of a command is here
	answered uint64        // commands, before the last read
	arrived  time.Duration // when the last read returned, since the start of s
	timed    uint64        // decisions whose latency is counted
	latency  *engine.LatencyPart
	over     bool         // close when what is written is flushed
	multi    *transaction // or nil
	reserved int          // of Config.Budget, by the transaction

	mu     sync.Mutex // of w, feed and net's writing side, while there is a feed
	locked bool       // serve has mu
	feed   *feed      // what is subscribed to, or nil; set under mu, by serve alone

	// For others.
	tokens  atomic.Pointer[access.Tokens] // by which who was authenticated; or nil
	asked   atomic.Uint64                 // commands
	reading clock
	writing atomic.Uint32         // round in which the write under way began, or 0
	told    atomic.Bool           // subscribes
	queued  atomic.Int32          // commands of the transaction, or noTransaction
	label   atomic.Pointer[label] // or nil
}

// A label is what a client says of itself, for CLIENT LIST.
type label struct {
	name, lib, version string
	who                access.Identity
	three              bool // version of the protocol
	channels, patterns int  // subscribed to
}

func newConn(s *Server, raw net.Conn, peer netip.Addr, p *patrol) *conn {
	c := &conn{
		s: s, patrol: p, raw: raw, net: raw, peer: peer, id: s.ids.Add(1), since: time.Now(), born: p.tick.Load(),
		caller: s.engine.Caller(), latency: s.latency.Part(),
	}
	if s.tls != nil {
		c.net = tls.Server(raw, s.tls)
	}
	c.r = resp.NewReader(c, strangerLimits)
	c.w = resp.NewWriter(c)
	c.r.SetBudget(s.config.Budget)
	c.w.SetBudget(s.config.Budget)
	c.queued.Store(noTransaction)
	c.reading.set(greeting, c.born)
	c.setTokens(s.config.Tokens())
	return c
}

// pipelines is more commands in a read than there are without a pipeline.
const pipelines = 4

// Read reads for c.r, and notes since when c waits for what.
func (c *conn) Read(b []byte) (int, error) {
	switch {
	case c.who.Role == access.None, !c.greeted:
		c.reading.set(greeting, c.born)
	case !c.r.Partial():
		c.reading.set(waiting, c.patrol.tick.Load())
	case !c.begun:
		c.begun = true
		c.reading.set(partial, c.patrol.tick.Load())
	}
	asked := c.asked.Load()
	if asked-c.answered <= pipelines {
		// One that does not pipeline has just been answered, and others may have
		// asked meanwhile: let them go first. Under load its next command is here
		// when it is read, and no read comes back with nothing.
		runtime.Gosched()
	}
	c.answered = asked
	n, err := c.net.Read(b)
	c.arrived = time.Since(c.s.started)
	if !c.begun && c.greeted {
		c.reading.set(working, 0)
	}
	return n, err
}

// Write writes for c.w, and notes since when.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Store(c.patrol.tick.Load())
	n, err := c.net.Write(b)
	c.writing.Store(0)
	return n, err
}

// serve answers commands until the client goes, or has to.
func (c *conn) serve() {
	defer c.end()
	for !c.over {
		args, err := c.r.Next()
		if err != nil {
			c.failed(err)
			return
		}
		c.begun = false
		if c.feed != nil {
			c.lock()
		}
		c.do(args)
		if c.over || !c.r.Ready() || c.w.Full() {
			err = c.w.Flush()
			c.observe()
		}
		c.unlock()
		if err != nil {
			return
		}
	}
}

// observe counts the latency of the decisions that were just sent, once for all of a
// pipeline: two looks at the clock per read, however many commands came with it.
func (c *conn) observe() {
	if n := c.caller.Decisions(); n != c.timed {
		c.latency.Observe(time.Since(c.s.started)-c.arrived, n-c.timed)
		c.timed = n
	}
}

// lock takes mu for serve, which needs it while there is a feed.
func (c *conn) lock() {
	if !c.locked {
		c.mu.Lock()
		c.locked = true
	}
}

func (c *conn) unlock() {
	if c.locked {
		c.locked = false
		c.mu.Unlock()
	}
}

// failed ends a connection that has nothing more to say, or nothing sensible.
func (c *conn) failed(err error) {
	c.lock() // a feed may be writing
	defer c.unlock()
	fault, ok := errors.AsType[resp.ProtocolError](err)
	switch {
	case ok:
		c.s.errors.Add(1)
		c.w.Error("ERR", fault.Error())
	case errors.Is(err, resp.ErrBudget):
		ok = true
		c.refuse(errBusy)
	}
	if c.w.Flush() == nil && (ok || c.patrol.draining.Load()) {
		c.linger()
	}
}

// errBusy answers a command for which there is no memory.
var errBusy = &engine.Error{Code: api.Overload, Message: "too many large commands are being received, or large replies being sent; try again later"}

// linger lets the client read what it was sent: closing a connection with bytes that
// nobody has read would have them thrown away on its side.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.raw.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, onlyReader{c.raw}, lingerBytes)
}

// An onlyReader hides what else its Reader can do.
type onlyReader struct{ io.Reader }

// end closes the connection, and catches what a command has thrown: it is the end of
// this connection and of nothing else.
func (c *conn) end() {
	if x := recover(); x != nil {
		c.s.panics.Add(1)
		c.s.log.Error("a command panicked", "peer", c.peer.String(), "panic", x, "stack", string(debug.Stack()))
	}
	c.raw.Close()
	c.leave()
	c.release()
	f := c.feed
	c.unlock()
	if f != nil {
		f.sub.Close()
		<-f.done
		c.s.subscribers.Add(-1)
	}
	c.r.Release()
	c.w.Release()
}

// do executes one command.
func (c *conn) do(args [][]byte) {
	c.asked.Store(c.asked.Load() + 1)
	if t := c.s.config.Tokens(); t != c.tokens.Load() && !c.renewed(t) {
		return
	}
	cmd, err := c.s.commands.find(args)
	if err == nil {
		err = c.may(cmd, len(args) > 1)
	}
	c.greeted = true
	switch {
	case c.multi != nil && !(err == nil && cmd.atOnce(args)):
		if err == nil {
			err = c.queue(cmd, args)
		}
		if err != nil {
			c.abort()
		}
	case err == nil:
		err = cmd.handle(c, args)
	}
	if err != nil {
		c.refuse(err)
	}
}

// may returns why c may not use cmd, or nil.
func (c *conn) may(cmd *command, withArgs bool) error {
	need := cmd.need
	if withArgs {
		need = max(need, cmd.needArgs)
	}
	if !c.who.Role.May(need) {
		c.s.unauthorized.Add(1)
		if c.who.Role == access.None {
			return &engine.Error{Code: api.NoAuth, Message: "authentication required: AUTH token"}
		}
		return needsRole(cmd.name, need)
	}
	if c.feed != nil && !cmd.inFeed && c.w.Version() == 2 {
		return badArg("%s is not for a connection that subscribes, but for HELLO 3; allowed are (P)SUBSCRIBE, (P)UNSUBSCRIBE, PING, RESET and QUIT", cmd.name)
	}
	return nil
}

func needsRole(what string, need access.Role) error {
	return &engine.Error{Code: api.NoPerm, Message: what + " needs the role " + need.String()}
}

// refuse answers with an error.
func (c *conn) refuse(err error) {
	c.s.errors.Add(1)
	if e, ok := errors.AsType[*engine.Error](err); ok {
		if e.Code == api.Overload {
			c.s.overloaded.Add(1)
			c.s.often.Warn("overload: a command is refused", "listener", "resp", "peer", c.peer.String(), "error", e.Message)
		}
		c.w.Error(string(e.Code), e.Message)
		return
	}
	c.w.Error(string(api.Failed), err.Error())
}

// setTokens begins with tokens t, and with nobody or, where there are none, with an
// admin.
func (c *conn) setTokens(t *access.Tokens) {
	c.tokens.Store(t)
	c.who = access.Identity{}
	if t == nil {
		c.become(access.Identity{Role: access.Admin})
	}
}

// become makes the client who it is.
func (c *conn) become(who access.Identity) {
	c.who = who
	c.tell(func(l *label) { l.who = who })
	c.r.SetLimits(callerLimits)
}

// renewed is called when the tokens are not those of before. If they say the same,
// nothing happens. Otherwise nobody knows whether that of c is still among them: it
// is closed, and has to authenticate anew. A token is not kept to look it up.
func (c *conn) renewed(t *access.Tokens) bool {
	if t.Equal(c.tokens.Load()) {
		c.tokens.Store(t)
		return true
	}
	if c.who.Role == access.None {
		c.setTokens(t)
		return true
	}
	c.over = true
	return false
}

// tell changes what others are told of c.
func (c *conn) tell(change func(*label)) {
	var l label
	if old := c.label.Load(); old != nil {
		l = *old
	}
	change(&l)
	c.label.Store(&l)
}
