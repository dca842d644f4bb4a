//go:build linux

package storm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// A conn is a RESP connection to a server, as an admin.
type conn struct {
	net.Conn
	replies *resp.ReplyReader
	out     []byte
}

// dialRaw connects to a server and sends nothing.
func (s *server) dialRaw() (net.Conn, error) {
	if path, unix := strings.CutPrefix(s.resp, "unix:"); unix {
		return net.DialTimeout("unix", path, patience)
	}
	return net.DialTimeout("tcp", s.resp, patience)
}

// dial connects to a server.
func (s *server) dial() (*conn, error) {
	raw, err := s.dialRaw()
	if err != nil {
		return nil, err
	}
	if s.run.Config.TLS {
		raw = tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) // of this test, on loopback
	}
	c := &conn{Conn: raw, replies: resp.NewReplyReader(raw, resp.Limits{Bulk: 1 << 20, Args: 1 << 16, Command: 4 << 20})}
	if s.run.token != "" {
		if _, err := c.do("AUTH", s.run.token); err != nil {
			raw.Close()
			return nil, err
		}
	}
	return c, nil
}

// queue adds a command for send.
func (c *conn) queue(args ...string) { c.out = resp.AppendCommand(c.out, args...) }

// send sends the queued commands.
func (c *conn) send() error {
	c.SetDeadline(time.Now().Add(patience))
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// An errorReply is an error that the server answered.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// next reads a reply.
func (c *conn) next() ([]resp.Value, error) {
	values, err := c.replies.Next()
	if err == nil && len(values) > 0 && values[0].Kind == resp.KindError {
		err = errorReply(values[0].Text)
	}
	return values, err
}

// do sends a command and reads its reply.
func (c *conn) do(args ...string) ([]resp.Value, error) {
	c.queue(args...)
	if err := c.send(); err != nil {
		return nil, err
	}
	return c.next()
}

// broken reports whether after this error the connection cannot be used any more.
func broken(err error) bool {
	_, answered := errors.AsType[errorReply](err)
	return err != nil && !answered
}

// decided records in c what a reply decides.
func (c *Call) decided(values []resp.Value, err error) {
	switch {
	case err != nil:
		c.Text = err.Error()
	case c.Verb == verbRefund || c.Verb == verbRelease:
		c.Answered = true
	case len(values) < 8 || values[0].Kind != resp.KindArray:
		c.Text = fmt.Sprint("the reply is no decision: ", values)
	default:
		c.judged(values[1].N == 1, string(values[6].Text), values[7].N)
	}
}

// judged records a decision in c.
func (c *Call) judged(allowed bool, rule string, bannedUntil int64) {
	c.Answered, c.Allowed, c.Text = true, allowed, rule
	if bannedUntil > 0 {
		c.Banned, c.Until = rule, bannedUntil
	}
}
