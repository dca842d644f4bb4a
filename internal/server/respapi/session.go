package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// A helloArgs is what the arguments of HELLO ask for.
type helloArgs struct {
	version int
	token   []byte
	auth    bool
	name    []byte
	named   bool
}

func hello(c *conn, args [][]byte) error {
	h := helloArgs{version: c.w.Version()}
	if err := h.read(args[1:]); err != nil {
		return err
	}
	if h.auth {
		if err := c.authenticate(h.token); err != nil {
			return err
		}
	}
	if c.who.Role == access.None {
		c.s.unauthorized.Add(1)
		return &engine.Error{Code: api.NoAuth, Message: "authentication required: HELLO 3 AUTH default token"}
	}
	if h.named {
		c.tell(func(l *label) { l.name = string(h.name) })
	}
	c.w.SetVersion(h.version)
	c.tell(func(l *label) { l.three = h.version == 3 })
	c.w.Map(7)
	for _, pair := range [...][2]string{{"server", "lately"}, {"version", c.s.config.Version}} {
		c.w.BulkString(pair[0])
		c.w.BulkString(pair[1])
	}
	c.w.BulkString("proto")
	c.w.Int(int64(h.version))
	c.w.BulkString("id")
	c.w.Int(c.id)
	for _, pair := range [...][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.w.BulkString(pair[0])
		c.w.BulkString(pair[1])
	}
	c.w.BulkString("modules")
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
			h.auth, h.token, args = true, args[2], args[3:]
		case isWord(args[0], "setname") && len(args) >= 2:
			if err := checkLabel("name", args[1]); err != nil {
				return err
			}
			h.named, h.name, args = true, args[1], args[2:]
		default:
			return badArg("HELLO does not take '%.32s' there; allowed are HELLO [2|3 [AUTH user token] [SETNAME name]]", args[0])
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

// authenticate makes the client who has the token. One that has tried several is
// closed after the answer.
func (c *conn) authenticate(token []byte) error {
	tokens := c.tokens.Load()
	if tokens == nil {
		return &engine.Error{Code: api.Failed, Message: "AUTH was called, but this server has no tokens: whoever can connect may do everything"}
	}
	role, name, ok := tokens.Role(string(token))
	if ok {
		c.become(access.Identity{Role: role, Name: name})
		return nil
	}
	c.s.unauthorized.Add(1)
	c.s.rejected.Add(c.peer)
	if c.logins++; c.logins >= maxLogins {
		c.over = true
	}
	return &engine.Error{Code: api.WrongPass, Message: "the token is unknown"}
}

func ping(c *conn, args [][]byte) error {
	switch {
	case c.feed != nil && c.w.Version() == 2:
		c.w.Array(2)
		c.w.BulkString("pong")
		if len(args) == 2 {
			c.w.Bulk(args[1])
		} else {
			c.w.BulkString("")
		}
	case len(args) == 2:
		c.w.Bulk(args[1])
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
		return badArg("database is '%.32s'; allowed is 0", args[1])
	}
	c.w.OK()
	return nil
}

// anew makes the connection what it was when it began, but for when that was.
func (c *conn) anew() error {
	c.dropFeed()
	c.leave()
	c.release()
	c.w.SetVersion(2)
	c.label.Store(nil)
	c.setTokens(c.tokens.Load())
	if c.who.Role == access.None {
		c.r.SetLimits(strangerLimits)
		c.born = c.patrol.tick.Load()
	}
	c.w.Simple("RESET")
	return nil
}

func clockTime(c *conn, _ [][]byte) error {
	now := c.s.engine.Now()
	c.w.Array(2)
	c.w.BulkString(fmt.Sprint(now.Unix()))
	c.w.BulkString(fmt.Sprint(now.Nanosecond() / int(time.Microsecond)))
	return nil
}

func configure(c *conn, args [][]byte) error {
	if !isWord(args[1], "get") {
		return badArg("'%.32s' is not for this server; allowed is CONFIG GET, which has nothing to tell: the configuration is in files and flags", args[1])
	}
	c.w.Map(0)
	return nil
}

// client answers what client libraries say and ask about themselves.
func client(c *conn, args [][]byte) error {
	word, rest := args[1], args[2:]
	switch {
	case isWord(word, "id") && len(rest) == 0:
		c.w.Int(c.id)
	case isWord(word, "getname") && len(rest) == 0:
		if l := c.label.Load(); l != nil && l.name != "" {
			c.w.BulkString(l.name)
		} else {
			c.w.Null()
		}
	case isWord(word, "setname") && len(rest) == 1:
		if err := checkLabel("name", rest[0]); err != nil {
			return err
		}
		c.tell(func(l *label) { l.name = string(rest[0]) })
		c.w.OK()
	case isWord(word, "setinfo") && len(rest) == 2:
		return c.setInfo(rest[0], rest[1])
	case isWord(word, "info") && len(rest) == 0:
		c.w.Text(c.line(time.Now()))
	case isWord(word, "list"):
		c.w.Text(c.s.list(c))
	case (isWord(word, "no-evict") || isWord(word, "no-touch")) && len(rest) == 1 && (isWord(rest[0], "on") || isWord(rest[0], "off")):
		c.w.OK()
	case isWord(word, "reply") && len(rest) == 1 && isWord(rest[0], "on"):
		c.w.OK()
	default:
		return badArg("CLIENT does not take '%.32s' so; allowed are %s", bytes.Join(args[1:], []byte(" ")), c.s.commands.named([]byte("client")).usage)
	}
	return nil
}

func (c *conn) setInfo(attribute, value []byte) error {
	if err := checkLabel("value", value); err != nil {
		return err
	}
	switch {
	case isWord(attribute, "lib-name"):
		c.tell(func(l *label) { l.lib = string(value) })
	case isWord(attribute, "lib-ver"):
		c.tell(func(l *label) { l.version = string(value) })
	default:
		return badArg("attribute is '%.32s'; allowed are LIB-NAME and LIB-VER", attribute)
	}
	c.w.OK()
	return nil
}

// checkLabel returns an error for what would break a line of CLIENT LIST.
func checkLabel(what string, b []byte) error {
	ok := len(b) <= maxLabel
	for _, x := range b {
		ok = ok && x > ' ' && x <= '~'
	}
	if !ok {
		return badArg("%s is '%.80s'; allowed are %d visible characters of ASCII", what, b, maxLabel)
	}
	return nil
}

// list returns a line for each connection: for all of them to an admin, to others
// for their own.
func (s *Server) list(c *conn) string {
	now := time.Now()
	if !c.who.Role.May(access.Admin) {
		return c.line(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for other := range s.conns {
		if b.Len() > maxList {
			break
		}
		b.WriteString(other.line(now))
	}
	return b.String()
}

// maxList is about how many bytes CLIENT LIST answers at most.
const maxList = 1 << 20
