package respapi

import (
	"fmt"
	"strings"
	"time"
)

// line returns what CLIENT INFO and CLIENT LIST say of c, in the format of Redis 7.
// Libraries need all of its fields as numbers; those of buffers are 0, as they are not
// measured. user is the name of the token, or its role if it has none.
func (c *conn) line(now time.Time) string {
	var l label
	if p := c.label.Load(); p != nil {
		l = *p
	}
	user, proto, flags := l.who.Name, 2, ""
	if user == "" {
		user = l.who.Role.String()
	}
	if l.three {
		proto = 3
	}
	if l.channels+l.patterns > 0 {
		flags += "P"
	}
	queued := c.queued.Load()
	if queued != noTransaction {
		flags += "x"
	}
	if flags == "" {
		flags = "N"
	}
	idle := int64(0)
	if p, since := c.reading.get(); p == waiting {
		idle = int64(time.Duration(c.patrol.tick.Load()-since) * round / time.Second)
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=0 multi=%d watch=0 "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=%s redir=-1 "+
		"resp=%d lib-name=%s lib-ver=%s tot-cmds=%d\n",
		c.id, c.raw.RemoteAddr(), c.raw.LocalAddr(), l.name, int64(now.Sub(c.since)/time.Second), idle, flags, l.channels, l.patterns, queued,
		strings.ReplaceAll(user, " ", "_"), proto, l.lib, l.version, c.asked.Load())
}
