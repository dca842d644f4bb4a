package respapi

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// A clientInfo is what CLIENT LIST shows of a connection. It is replaced as a whole.
type clientInfo struct {
	name, lib, version string // as the client calls itself
	who                access.Identity
	resp3              bool
	channels, patterns int // subscriptions
}

// info returns what CLIENT LIST shows of c.
func (c *conn) info() clientInfo {
	if i := c.client.Load(); i != nil {
		return *i
	}
	return clientInfo{}
}

// subscribes reports whether c has subscriptions.
func (c *conn) subscribes() bool {
	i := c.client.Load()
	return i != nil && i.channels+i.patterns > 0
}

// update changes what CLIENT LIST shows of c.
func (c *conn) update(change func(*clientInfo)) {
	i := c.info()
	change(&i)
	c.client.Store(&i)
}

// client answers what client libraries say and ask about themselves.
func client(c *conn, args [][]byte) error {
	word, rest := args[1], args[2:]
	switch {
	case isWord(word, "id") && len(rest) == 0:
		c.w.Int(c.id)
	case isWord(word, "getname") && len(rest) == 0:
		if name := c.info().name; name != "" {
			c.w.BulkString(name)
		} else {
			c.w.Null()
		}
	case isWord(word, "setname") && len(rest) == 1:
		return c.setInfo(word, rest[0])
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
		return badArg("CLIENT '%.32s': must be %s", bytes.Join(args[1:], []byte(" ")), c.s.commands.named(args[0]).usage)
	}
	return nil
}

// setInfo stores what a client says of itself.
func (c *conn) setInfo(attribute, value []byte) error {
	if err := checkClientText(attribute, value); err != nil {
		return err
	}
	text := string(value)
	switch {
	case isWord(attribute, "setname"):
		c.update(func(i *clientInfo) { i.name = text })
	case isWord(attribute, "lib-name"):
		c.update(func(i *clientInfo) { i.lib = text })
	case isWord(attribute, "lib-ver"):
		c.update(func(i *clientInfo) { i.version = text })
	default:
		return badArg("attribute '%.32s': must be LIB-NAME or LIB-VER", attribute)
	}
	c.w.OK()
	return nil
}

// checkClientText returns an error for a text that would break a line of CLIENT LIST.
func checkClientText(what, text []byte) error {
	visible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(text) > maxClientText || len(bytes.TrimLeftFunc(text, visible)) > 0 {
		return badArg("%.32s '%.80s': must be up to %d visible characters of ASCII", what, text, maxClientText)
	}
	return nil
}

// process returns the name of the client, or its address if it has given none.
func (c *conn) process() string {
	if name := c.info().name; name != "" {
		return name
	}
	return access.PeerName(c.peer)
}

// list returns a line for each connection, if c is an admin, and otherwise its own.
func (s *Server) list(c *conn) string {
	now := time.Now()
	if !c.who.Role.May(access.Admin) {
		return c.line(now)
	}
	var b strings.Builder
	for _, other := range s.connections() {
		if b.Len() < maxClientList {
			b.WriteString(other.line(now))
		}
	}
	return b.String()
}

// address returns an end of the connection as Redis shows it: on a Unix socket both are its path and port 0.
func (c *conn) address(end net.Addr) string {
	if end.Network() == "unix" {
		return c.raw.LocalAddr().String() + ":0"
	}
	return end.String()
}

// line returns a line of CLIENT LIST in the format of Redis 7. Libraries need all of its
// fields; those of buffers are not measured and 0. user is the token's name, or its role.
func (c *conn) line(now time.Time) string {
	i := c.info()
	user, proto, flags := cmp.Or(i.who.Name, i.who.Role.String()), 2, ""
	if i.resp3 {
		proto = 3
	}
	if i.channels+i.patterns > 0 {
		flags += "P"
	}
	queued := c.queued.Load()
	if queued != noTransaction {
		flags += "x"
	}
	flags = cmp.Or(flags, "N")
	var idle time.Duration
	if p, since := c.reading.get(); p == waiting {
		idle = time.Duration(c.s.tick.Load()-since) * tickEvery
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=0 multi=%d watch=0 "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=%s redir=-1 "+
		"resp=%d lib-name=%s lib-ver=%s tot-cmds=%d\n",
		c.id, c.address(c.raw.RemoteAddr()), c.address(c.raw.LocalAddr()), i.name, now.Sub(c.since)/time.Second, idle/time.Second, flags, i.channels, i.patterns, queued,
		strings.ReplaceAll(user, " ", "_"), proto, i.lib, i.version, c.commands.Load())
}
