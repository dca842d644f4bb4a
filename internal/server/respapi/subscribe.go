package respapi

import (
	"net"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// A feed is what a connection subscribes to, and the goroutine that tells it. It
// ends with its last subscription.
type feed struct {
	sub      *engine.Subscription
	channels []string // in the order in which they were asked for
	patterns []string
	done     chan struct{}
	name     []byte // memory for a channel's name
}

func (f *feed) count() int { return len(f.channels) + len(f.patterns) }

func (f *feed) list(pattern bool) *[]string {
	if pattern {
		return &f.patterns
	}
	return &f.channels
}

func subscribe(c *conn, args [][]byte) error { return c.subscribe("subscribe", args[1:], false) }

func psubscribe(c *conn, args [][]byte) error { return c.subscribe("psubscribe", args[1:], true) }

func unsubscribe(c *conn, args [][]byte) error { return c.unsubscribe("unsubscribe", args[1:], false) }

func punsubscribe(c *conn, args [][]byte) error { return c.unsubscribe("punsubscribe", args[1:], true) }

// subscribe adds subscriptions, all of them or none, and answers for each.
func (c *conn) subscribe(kind string, names [][]byte, pattern bool) error {
	held := 0
	if c.feed != nil {
		held = c.feed.count()
	}
	if held+len(names) > maxSubscriptions {
		return badArg("there would be %d subscriptions; allowed are %d on a connection", held+len(names), maxSubscriptions)
	}
	for _, n := range names {
		if len(n) == 0 || len(n) > maxChannel {
			return badArg("the name of a channel has %d bytes; allowed are 1 to %d", len(n), maxChannel)
		}
	}
	if err := c.needFeed(); err != nil {
		return err
	}
	for _, n := range names {
		list := c.feed.list(pattern)
		if !has(*list, n) {
			*list = append(*list, string(n))
		}
		c.confirm(kind, n, c.feed.count())
	}
	c.tellFeed()
	return nil
}

// tellFeed notes what is subscribed to, for CLIENT LIST.
func (c *conn) tellFeed() {
	c.tell(func(l *label) {
		if l.channels, l.patterns = 0, 0; c.feed != nil {
			l.channels, l.patterns = len(c.feed.channels), len(c.feed.patterns)
		}
	})
}

// needFeed makes a feed if there is none. mu is held when it returns.
func (c *conn) needFeed() error {
	if c.feed != nil {
		return nil // and so mu is held
	}
	if c.s.subscribers.Add(1) > int64(c.s.config.MaxSubscribers) {
		c.s.subscribers.Add(-1)
		return &engine.Error{Code: api.Overload, Message: "there are too many subscribers"}
	}
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(subscriberRoom) // no error matters: it is a bound, not a promise
	}
	c.lock()
	c.feed = &feed{sub: c.s.engine.Subscribe(), done: make(chan struct{})}
	c.told.Store(true)
	f := c.feed
	c.patrol.serving.Go(func() { f.run(c) })
	return nil
}

// unsubscribe ends subscriptions, all of that kind if no name is given.
func (c *conn) unsubscribe(kind string, names [][]byte, pattern bool) error {
	if len(names) == 0 && c.feed != nil {
		for _, n := range *c.feed.list(pattern) {
			names = append(names, []byte(n))
		}
	}
	if len(names) == 0 {
		held := 0
		if c.feed != nil {
			held = c.feed.count()
		}
		c.confirm(kind, nil, held)
		return nil
	}
	for _, n := range names {
		held := 0
		if c.feed != nil {
			list := c.feed.list(pattern)
			*list = without(*list, n)
			held = c.feed.count()
		}
		c.confirm(kind, n, held)
	}
	if c.feed != nil && c.feed.count() == 0 {
		c.dropFeed()
	}
	c.tellFeed()
	return nil
}

// dropFeed ends the feed. What it has not written yet is not written any more.
//
// REQUIRES: mu, if there is a feed.
func (c *conn) dropFeed() {
	f := c.feed
	if f == nil {
		return
	}
	c.feed = nil
	c.told.Store(false)
	f.sub.Close()
	c.s.subscribers.Add(-1)
}

// confirm answers for one subscription that began or ended.
func (c *conn) confirm(kind string, name []byte, held int) {
	c.w.Push(3)
	c.w.BulkString(kind)
	if name == nil {
		c.w.Null()
	} else {
		c.w.Bulk(name)
	}
	c.w.Int(int64(held))
}

func has(list []string, name []byte) bool {
	for _, x := range list {
		if x == string(name) {
			return true
		}
	}
	return false
}

func without(list []string, name []byte) []string {
	for i, x := range list {
		if x == string(name) {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// run writes what is published until the subscription ends. If a client does not read,
// a write blocks until the reaper closes the connection; if it reads too slowly, its
// subscription ends, and the connection is closed. Nobody waits for it.
func (f *feed) run(c *conn) {
	defer close(f.done)
	for {
		select {
		case <-f.sub.Done():
			f.ended(c)
			return
		case <-f.sub.Wait():
		}
		c.mu.Lock()
		if c.feed != f {
			c.mu.Unlock()
			return
		}
		for !c.w.Full() {
			ev, ok := f.sub.Next()
			if !ok {
				break
			}
			f.publish(c, ev)
		}
		err := c.w.Flush()
		c.mu.Unlock()
		if err != nil {
			c.raw.Close()
			return
		}
	}
}

// ended closes the connection of a feed whose subscription has ended, if the client has
// not ended it itself.
func (f *feed) ended(c *conn) {
	if f.sub.Slow() {
		c.s.cut.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed == f {
		c.raw.Close()
	}
}

// publish writes ev once for each subscription that it concerns.
func (f *feed) publish(c *conn, ev *engine.Event) {
	rule := ev.Rule
	var channel string
	switch ev.Type {
	case api.BanStarted:
		channel = "bans"
		if ev.Ban != nil {
			rule = ev.Ban.Rule
		}
	case api.BanEnded:
		channel = "unbans"
	case api.KeyHot:
		channel = "hot"
	default:
		channel = string(ev.Type)
	}
	f.name = append(f.name[:0], channel...)
	f.send(c, ev)
	if rule != "" {
		f.name = append(append(f.name, ':'), rule...)
		f.send(c, ev)
	}
}

// send writes what is published on the channel f.name.
func (f *feed) send(c *conn, ev *engine.Event) {
	if has(f.channels, f.name) {
		c.w.Push(3)
		c.w.BulkString("message")
		c.w.Bulk(f.name)
		c.w.Bulk(ev.JSON)
	}
	for _, p := range f.patterns {
		if engine.Glob(p, f.name) {
			c.w.Push(4)
			c.w.BulkString("pmessage")
			c.w.BulkString(p)
			c.w.Bulk(f.name)
			c.w.Bulk(ev.JSON)
		}
	}
}
