package respapi

import (
	"bytes"
	"cmp"

	"github.com/lately-go/lately/internal/server/access"
)

// client answers what client libraries say and ask about themselves.
func client(c *conn, args [][]byte) error {
	word, rest := args[1], args[2:]
	switch {
	case isWord(word, "id") && len(rest) == 0:
		c.w.Int(c.id)
	case isWord(word, "getname") && len(rest) == 0:
		if c.name != "" {
			c.w.BulkString(c.name)
		} else {
			c.w.Null()
		}
	case isWord(word, "setname") && len(rest) == 1:
		return c.setInfo(word, rest[0])
	case isWord(word, "setinfo") && len(rest) == 2:
		return c.setInfo(rest[0], rest[1])
	case (isWord(word, "no-evict") || isWord(word, "no-touch")) && len(rest) == 1 && (isWord(rest[0], "on") || isWord(rest[0], "off")):
		c.w.OK()
	case isWord(word, "reply") && len(rest) == 1 && isWord(rest[0], "on"):
		c.w.OK()
	default:
		return badArg("CLIENT '%.32s': must be %s", bytes.Join(args[1:], []byte(" ")), c.s.commands.named(args[0]).usage)
	}
	return nil
}

// setInfo stores the name of a client. The name and the version of its library are checked, and not kept.
func (c *conn) setInfo(attribute, value []byte) error {
	if err := checkClientText(attribute, value); err != nil {
		return err
	}
	switch {
	case isWord(attribute, "setname"):
		c.name = string(value)
	case !isWord(attribute, "lib-name") && !isWord(attribute, "lib-ver"):
		return badArg("attribute '%.32s': must be LIB-NAME or LIB-VER", attribute)
	}
	c.w.OK()
	return nil
}

// checkClientText returns an error for a text that Redis would not take.
func checkClientText(what, text []byte) error {
	visible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(text) > maxClientText || len(bytes.TrimLeftFunc(text, visible)) > 0 {
		return badArg("%.32s '%.80s': must be up to %d visible characters of ASCII", what, text, maxClientText)
	}
	return nil
}

// process returns the name of the client, or its address if it has given none.
func (c *conn) process() string { return cmp.Or(c.name, access.PeerName(c.peer)) }
