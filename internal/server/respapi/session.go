package respapi

import (
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// connectionCommands are about the connection.
var connectionCommands = []command{
	{
		name: "hello", usage: "[2|3 [AUTH user token] [SETNAME name]]", summary: "Choose the version of the protocol, and authenticate",
		group: groupConnection, least: 1, notQueued: true, handle: hello,
	},
	{
		name: "auth", usage: "[user] token", summary: "Authenticate; the user is ignored",
		group: groupConnection, least: 2, most: 3, notQueued: true, handle: auth,
	},
	{name: "ping", usage: "[message]", summary: "Answer PONG, or the message", group: groupConnection, least: 1, most: 2, whileSubscribed: true, handle: ping},
	{name: "quit", summary: "Close the connection", group: groupConnection, least: 1, whileSubscribed: true, immediate: true, handle: quit},
	{name: "echo", usage: "message", summary: "Answer the message", group: groupConnection, role: access.Read, least: 2, most: 2, handle: echo},
	{name: "select", usage: "0", summary: "Select the only database", group: groupConnection, role: access.Read, least: 2, most: 2, handle: selectDB},
	{
		name: "client", usage: "ID|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT mode|NO-TOUCH mode|REPLY ON",
		summary: "The number of the connection, and the name of its client", group: groupConnection, role: access.Read, least: 2, handle: client,
	},
}

// A helloArgs is the arguments of HELLO.
type helloArgs struct {
	version     int
	token, name []byte // nil: not given
}

func hello(c *conn, args [][]byte) error {
	h := helloArgs{version: c.w.Version()}
	if err := h.read(args[1:]); err != nil {
		return err
	}
	if h.token != nil {
		if err := c.authenticate(h.token); err != nil {
			return err
		}
	}
	if c.who.Role == access.None {
		c.s.Unauthorized.Add(1)
		return c.noAuth("HELLO 3 AUTH default token")
	}
	c.w.SetVersion(h.version)
	if h.name != nil {
		c.name = string(h.name)
	}
	c.w.Map(7)
	c.strings("server", "lately", "version", c.s.Version, "proto")
	c.w.Int(int64(h.version))
	c.w.BulkString("id")
	c.w.Int(c.id)
	c.strings("mode", "standalone", "role", "master", "modules")
	c.w.Array(0)
	return nil
}

func (h *helloArgs) read(args [][]byte) error {
	if len(args) > 0 {
		v, err := readInt("protocol version", args[0], 2, 3)
		if err != nil {
			return err
		}
		h.version, args = int(v), args[1:]
	}
	for len(args) > 0 {
		switch {
		case isWord(args[0], "auth") && len(args) >= 3:
			h.token, args = args[2], args[3:]
		case isWord(args[0], "setname") && len(args) >= 2:
			if err := checkClientText(args[0], args[1]); err != nil {
				return err
			}
			h.name, args = args[1], args[2:]
		default:
			return badArg("'%.32s': must be HELLO [2|3 [AUTH user token] [SETNAME name]]", args[0])
		}
	}
	return nil
}

func auth(c *conn, args [][]byte) error {
	if err := c.authenticate(args[len(args)-1]); err != nil {
		return err
	}
	c.w.OK()
	return nil
}

// authenticate gives c the role of a token. After several unknown tokens the connection
// is closed.
func (c *conn) authenticate(token []byte) error {
	tokens := c.tokens.Load()
	if tokens == nil {
		return apierror.New(api.Failed, "AUTH was called, but this server has no tokens: whoever can connect may do everything")
	}
	role, name, ok := tokens.Role(string(token))
	if ok {
		c.become(access.Identity{Role: role, Name: name})
		return nil
	}
	c.s.RejectLogin(c.peer)
	if c.logins++; c.logins >= maxLogins {
		c.over = true
	}
	return apierror.New(api.WrongPass, "the token is unknown")
}

// setTokens puts tokens in force: c has the role of its certificate or none, or without tokens that of an admin.
func (c *conn) setTokens(t *access.Tokens) {
	c.tokens.Store(t)
	c.who = access.Identity{}
	if t == nil {
		c.become(access.Identity{Role: access.Admin})
	} else if who, ok := t.Certificate(c.certs); ok {
		c.become(who)
	}
}

func (c *conn) become(who access.Identity) {
	c.who = who
	if c.s.Engine.Shared() {
		c.r.SetLimits(batchLimits)
	} else {
		c.r.SetLimits(knownLimits)
	}
}

// tokensChanged puts other tokens in force, and reports whether c may continue. If they are
// not equal to those before, a client that has authenticated must do so again on another
// connection, since its token is not stored.
func (c *conn) tokensChanged(t *access.Tokens) bool {
	switch {
	case t.Equal(c.tokens.Load()):
		c.tokens.Store(t)
	case c.who.Role == access.None:
		c.setTokens(t)
	default:
		c.over = true
	}
	return !c.over
}

// reset makes the connection what it was when it began.
func (c *conn) reset() {
	c.stopSubscriber()
	c.drop(c.leave())
	c.w.SetVersion(2)
	c.name = ""
	c.setTokens(c.tokens.Load())
	if c.who.Role == access.None {
		c.r.SetLimits(unknownLimits)
		c.began = c.s.tick.Load()
	}
	c.w.Simple("RESET")
}

func ping(c *conn, args [][]byte) error {
	message := ""
	if len(args) == 2 {
		message = keys.View(args[1])
	}
	switch {
	case c.sub != nil && c.w.Version() == 2:
		c.w.Array(2)
		c.strings("pong", message)
	case len(args) == 2:
		c.w.BulkString(message)
	default:
		c.w.Simple("PONG")
	}
	return nil
}

func quit(c *conn, _ [][]byte) error {
	c.w.OK()
	c.over = true
	return nil
}

func echo(c *conn, args [][]byte) error {
	c.w.Bulk(args[1])
	return nil
}

func selectDB(c *conn, args [][]byte) error {
	if string(args[1]) != "0" {
		return badArg("database '%.32s': must be 0", args[1])
	}
	c.w.OK()
	return nil
}

func configure(c *conn, args [][]byte) error {
	if !isWord(args[1], "get") {
		return badArg("CONFIG '%.32s': must be GET; the configuration is in files and flags", args[1])
	}
	c.w.Map(0)
	return nil
}
