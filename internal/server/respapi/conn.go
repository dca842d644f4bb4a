package respapi

import (
	"cmp"
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
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/listen"
)

// A conn is one connection. Its goroutine, serve, uses all fields; others use only
// those that say so.
type conn struct {
	s     *Server
	raw   net.Conn // closed by anyone
	net   net.Conn // raw, or TLS over it
	peer  netip.Addr
	id    int64
	name  string // that the client has given itself
	began uint32 // tick

	r       *resp.Reader
	w       *resp.Writer // under mu
	session *engine.Session
	report  hotkeys.Report
	values  []string // memory for the values of a key

	certs    []string // names of the client's certificate
	who      access.Identity
	logins   int  // unknown tokens
	greeted  bool // has sent a command
	begun    bool // a part of a command has arrived
	commands uint64
	answered uint64        // commands, before the last read
	counted  uint64        // commands, in s.Requests
	arrived  time.Duration // when the last read returned, since the start of s
	timed    uint64        // decisions whose latency is counted
	latency  *listen.LatencyPart
	over     bool         // close when the write buffer is flushed
	multi    *transaction // or nil

	mu  sync.Mutex  // of w, sub and writing to net; serve holds it, but not while it reads
	sub *subscriber // or nil; set by serve alone

	// For all goroutines.
	tokens     atomic.Pointer[access.Tokens] // by which who was authenticated; or nil
	reading    phaseClock
	writing    atomic.Uint32 // tick at which the write in progress began, or 0
	queuing    atomic.Uint32 // tick at which the transaction began, or 0
	subscribes atomic.Bool
}

func newConn(s *Server, raw net.Conn, peer netip.Addr) *conn {
	c := &conn{
		s: s, raw: raw, net: raw, peer: peer, id: s.ids.Add(1), began: s.tick.Load(),
		session: s.Engine.Session(), latency: s.Latency.Part(),
	}
	if s.TLS != nil {
		c.net = tls.Server(raw, s.tls)
	}
	c.r = resp.NewReader(c, unknownLimits)
	c.w = resp.NewWriter(c)
	c.r.SetBudget(s.Budget)
	c.w.SetBudget(s.Budget)
	c.reading.set(greeting, c.began)
	c.setTokens(s.Tokens())
	return c
}

// pipelines is more commands in a read than there are without a pipeline.
const pipelines = 4

// Read reads for c.r, and stores the phase of c.
func (c *conn) Read(b []byte) (int, error) {
	switch {
	case c.who.Role == access.None, !c.greeted:
		c.reading.set(greeting, c.began)
	case !c.r.Partial():
		c.reading.set(waiting, c.s.tick.Load())
	case !c.begun:
		c.begun = true
		c.reading.set(partial, c.s.tick.Load())
	}
	if c.commands-c.answered <= pipelines {
		// The client has just been answered, and others may have sent commands
		// meanwhile: run them first. Under load its next command has then arrived, and
		// the read need not wait.
		runtime.Gosched()
	}
	c.answered = c.commands
	c.mu.Unlock()
	defer c.mu.Lock()
	n, err := c.net.Read(b)
	c.arrived = time.Since(c.s.started)
	if !c.begun && c.greeted {
		c.reading.set(working, 0)
	}
	return n, err
}

// Write writes for c.w, and stores when it began.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Store(c.s.tick.Load())
	n, err := c.net.Write(b)
	c.writing.Store(0)
	return n, err
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	c.mu.Lock()
	defer c.end()
	c.over = !c.handshake()
	for !c.over {
		args, err := c.r.Next()
		if err != nil {
			c.failed(err)
			return
		}
		c.begun = false
		c.do(args)
		if c.over || !c.r.Ready() || c.w.Full() {
			c.decide()
			c.count()
			err = c.w.Flush()
			c.observe()
		}
		if err != nil {
			return
		}
	}
}

// handshake gives c the role of the client's certificate, and reports whether c can be used. Where clients
// are not asked for certificates, the first read does the handshake.
func (c *conn) handshake() bool {
	secure, ok := c.net.(*tls.Conn)
	if !ok || c.s.ClientCAs == nil {
		return true
	}
	if err := secure.Handshake(); err != nil {
		if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad {
			c.s.BadCertificate(c.peer, err)
			c.linger(c.raw) // so that the client can read the alert
		}
		return false
	}
	if given := secure.ConnectionState().PeerCertificates; len(given) > 0 {
		c.certs = access.CertificateNames(given[0])
		c.setTokens(c.s.Tokens())
		if c.who.Role == access.None {
			c.s.RejectCertificate(c.peer, c.certs)
		}
	}
	return true
}

// count adds the commands since the last call to those of the listener.
func (c *conn) count() {
	c.s.Requests.Add(c.commands - c.counted)
	c.counted = c.commands
}

// observe counts the latency of the decisions that were just sent, once for all of a
// pipeline.
func (c *conn) observe() {
	if n := c.session.Decisions(); n != c.timed {
		c.latency.Observe(time.Since(c.s.started)-c.arrived, n-c.timed)
		c.timed = n
	}
}

// failed answers a reading error, if it is one of the client, and closes the connection.
func (c *conn) failed(err error) {
	c.decide()
	fault, ok := errors.AsType[resp.ProtocolError](err)
	switch {
	case ok:
		c.s.Errors.Add(1)
		c.w.Error(string(api.Failed), fault.Error())
	case errors.Is(err, resp.ErrBudget):
		ok = true
		c.refuse(errBusy)
	}
	if c.w.Flush() == nil && (ok || c.s.draining.Load()) {
		c.linger(c.net)
	}
}

// errBusy answers a command for which there is no memory.
var errBusy = apierror.New(api.Overload, "too many large commands are being received, or large replies being sent; try again later")

// linger ends what c writes to out, c.net or c.raw, and reads for a while: if a connection is closed with
// unread bytes, the client's kernel discards the replies.
func (c *conn) linger(out net.Conn) {
	half, ok := out.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.raw.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, struct{ io.Reader }{c.raw}, lingerBytes)
}

// end closes the connection. A panic of a command ends this connection only.
func (c *conn) end() {
	if x := recover(); x != nil {
		c.s.Panics.Add(1)
		c.s.Log.Error("a command panicked", "peer", access.PeerName(c.peer), "panic", x, "stack", string(debug.Stack()))
	}
	c.raw.Close()
	c.count()
	c.drop(c.leave())
	c.stopSubscriber()
	c.r.Release()
	c.w.Release()
	c.mu.Unlock()
}

// do executes one command.
func (c *conn) do(args [][]byte) {
	c.commands++
	if t := c.s.Tokens(); t != c.tokens.Load() && !c.tokensChanged(t) {
		return
	}
	cmd, err := c.s.commands.find(args)
	if err == nil {
		err = c.may(cmd, len(args) > 1)
	}
	c.greeted = true
	switch {
	case c.multi != nil && !(err == nil && cmd.runsNow(args)):
		if err == nil {
			err = c.queue(cmd, args)
		}
		if err != nil {
			c.drop(c.multi)
			c.multi.failed = cmp.Or(c.multi.failed, errNotQueued)
		}
	case err == nil:
		err = c.run(cmd, args)
	}
	if err != nil {
		c.refuse(err)
	}
}

// may returns why c may not use cmd, or nil.
func (c *conn) may(cmd *command, withArgs bool) error {
	role := cmd.role
	if withArgs {
		role = max(role, cmd.argsRole)
	}
	switch {
	case !c.who.Role.May(role):
		c.s.Unauthorized.Add(1)
		if c.who.Role == access.None {
			return c.noAuth("AUTH token")
		}
		return apierror.New(api.NoPerm, "%s needs the role %v", cmd.name, role)
	case c.sub != nil && !cmd.whileSubscribed && c.w.Version() == 2:
		return badArg("%s on a connection that subscribes: must be (P)SUBSCRIBE, (P)UNSUBSCRIBE, PING, RESET or QUIT, unless HELLO 3 was sent", cmd.name)
	}
	return nil
}

// noAuth is the error for a client without a role, with the command that gives it one.
func (c *conn) noAuth(command string) error {
	if c.certs != nil {
		return apierror.New(api.NoAuth, "authentication required: %s: %s", listen.NoRole(c.certs), command)
	}
	return apierror.New(api.NoAuth, "authentication required: %s", command)
}

// refuse answers with an error.
func (c *conn) refuse(err error) {
	c.decide()
	c.s.Errors.Add(1)
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		e = &apierror.Error{Code: api.Failed, Message: err.Error()}
	}
	if e.Code == api.Overload {
		c.s.Overloaded.Add(1)
		c.s.Limited.Warn("overload: a command is refused", "listener", "resp", "peer", access.PeerName(c.peer), "error", e.Message)
	}
	c.w.Error(string(e.Code), e.Message)
}
