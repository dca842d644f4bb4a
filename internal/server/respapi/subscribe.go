package respapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/internal/server/keys"
)

// subscriptionCommands subscribe to events.
var subscriptionCommands = []command{
	{
		name: "subscribe", usage: "channel [channel ...]", summary: "Receive events of the channels bans, unbans, hot and rules, or of one rule: bans:NAME, unbans:NAME, hot:NAME; hot.watch and hot.watch:NAME are the channels of HOT.WATCH",
		group: groupPubSub, role: access.Read, least: 2, whileSubscribed: true, notQueued: true, handle: subscribe,
	},
	{
		name: "psubscribe", usage: "pattern [pattern ...]", summary: "Receive messages of channels that a pattern matches",
		group: groupPubSub, role: access.Read, least: 2, whileSubscribed: true, notQueued: true, handle: subscribe,
	},
	{
		name: "unsubscribe", usage: "[channel ...]", summary: "End subscriptions to these channels, or to all",
		group: groupPubSub, role: access.Read, least: 1, whileSubscribed: true, notQueued: true, handle: unsubscribe,
	},
	{
		name: "punsubscribe", usage: "[pattern ...]", summary: "End subscriptions to these patterns, or to all",
		group: groupPubSub, role: access.Read, least: 1, whileSubscribed: true, notQueued: true, handle: unsubscribe,
	},
}

// A subscriber has the subscriptions of a connection, and a goroutine that writes events to
// it. It ends with its last subscription.
type subscriber struct {
	sub      *events.Subscription // to events; nil while only hot keys are watched
	watches  []*hotWatch          // of hot keys; their channels are in channels, too
	changed  chan struct{}        // tells run that sub or watches have changed, or that it has ended
	channels []string             // in the order in which they were added
	patterns []string
	name     []byte // memory for the name of a channel
}

// count returns the number of subscriptions, of a subscriber that may be nil.
func (f *subscriber) count() int {
	if f == nil {
		return 0
	}
	return len(f.channels) + len(f.patterns)
}

func (f *subscriber) list(pattern bool) *[]string {
	if pattern {
		return &f.patterns
	}
	return &f.channels
}

// subscribe is SUBSCRIBE and PSUBSCRIBE, and unsubscribe what ends them.
func subscribe(c *conn, args [][]byte) error {
	kind := strings.ToLower(string(args[0]))
	return c.subscribe(kind, args[1:], kind[0] == 'p')
}

func unsubscribe(c *conn, args [][]byte) error {
	kind := strings.ToLower(string(args[0]))
	return c.unsubscribe(kind, args[1:], kind[0] == 'p')
}

// subscribe adds subscriptions, all of them or none, and answers for each.
func (c *conn) subscribe(kind string, names [][]byte, pattern bool) error {
	if n := c.sub.count() + len(names); n > maxSubscriptions {
		return badArg("%d subscriptions: must be up to %d on a connection", n, maxSubscriptions)
	}
	for _, n := range names {
		if len(n) == 0 || len(n) > maxChannel {
			return badArg("name of a channel: %d bytes: must be 1 to %d", len(n), maxChannel)
		}
	}
	var watches []*hotWatch
	if !pattern {
		var err error
		if watches, err = c.watches(kind, names); err != nil {
			return err
		}
	}
	if err := c.startSubscriber(); err != nil {
		for _, h := range watches {
			h.Close()
		}
		return err
	}
	if c.sub.sub == nil && len(watches) < len(names) {
		c.sub.sub = c.s.Engine.Subscribe()
	}
	for _, n := range names {
		if list := c.sub.list(pattern); !has(*list, n) {
			*list = append(*list, string(n))
		}
		c.confirm(kind, n)
	}
	c.sub.watch(watches...)
	return nil
}

// startSubscriber makes a subscriber if there is none.
func (c *conn) startSubscriber() error {
	if c.sub != nil {
		return nil
	}
	if c.s.Subscribers.Add(1) > int64(c.s.MaxSubscribers) {
		c.s.Subscribers.Add(-1)
		return apierror.New(api.Overload, "there are too many subscribers")
	}
	if kernel, ok := c.raw.(interface{ SetWriteBuffer(int) error }); ok {
		kernel.SetWriteBuffer(subscriberBuffer) // best effort
	}
	f := &subscriber{changed: make(chan struct{}, 1)}
	c.sub = f
	c.subscribes.Store(true)
	c.s.serving.Go(func() { f.run(c) })
	return nil
}

// unsubscribe ends subscriptions, all of that kind if no name is given.
func (c *conn) unsubscribe(kind string, names [][]byte, pattern bool) error {
	if c.sub != nil && len(names) == 0 {
		for _, n := range *c.sub.list(pattern) {
			names = append(names, []byte(n))
		}
	}
	for _, n := range names {
		if c.sub != nil {
			list := c.sub.list(pattern)
			*list = slices.DeleteFunc(*list, func(x string) bool { return x == string(n) })
			if !pattern {
				c.sub.unwatch(string(n))
			}
		}
		c.confirm(kind, n)
	}
	if len(names) == 0 {
		c.confirm(kind, nil)
	}
	if c.sub.count() == 0 {
		c.stopSubscriber()
	}
	return nil
}

// stopSubscriber ends the subscriber, if there is one. Events that it has not written
// yet are dropped.
func (c *conn) stopSubscriber() {
	f := c.sub
	if f == nil {
		return
	}
	c.sub = nil
	c.subscribes.Store(false)
	if f.sub != nil {
		f.sub.Close()
	}
	for _, h := range f.watches {
		h.Close()
	}
	f.wake()
	c.s.Subscribers.Add(-1)
}

// confirm answers for one subscription that began or ended.
func (c *conn) confirm(kind string, name []byte) {
	if kind == hotChannel {
		c.w.OK()
		return
	}
	c.w.Push(3)
	c.w.BulkString(kind)
	if name == nil {
		c.w.Null()
	} else {
		c.w.Bulk(name)
	}
	c.w.Int(int64(c.sub.count()))
}

func has(list []string, name []byte) bool {
	return slices.ContainsFunc(list, func(x string) bool { return x == string(name) })
}

// wake has run look at what has changed.
func (f *subscriber) wake() {
	select {
	case f.changed <- struct{}{}:
	default: // run has not received the last one
	}
}

// run writes events until the subscription ends. If a client does not read, a write blocks
// until the reaper closes the connection; if it reads too slowly, its subscription ends.
func (f *subscriber) run(c *conn) {
	var sub *events.Subscription
	var events, ended, hot <-chan struct{} // there may be events or updates, or there is an end of events
	for {
		if sub != nil {
			events, ended = sub.Wait(), sub.Done()
		}
		select {
		case <-ended:
			f.ended(c, sub)
			return
		case <-events:
		case <-f.changed:
		case <-hot:
		}
		c.mu.Lock()
		if c.sub != f {
			c.mu.Unlock()
			return
		}
		sub, hot = f.sub, f.wait()
		for sub != nil && !c.w.Full() {
			ev, ok := sub.Next()
			if !ok {
				break
			}
			f.publish(c, ev)
		}
		err := cmp.Or(f.sendHot(c), c.w.Flush())
		c.mu.Unlock()
		if err != nil {
			c.raw.Close()
			return
		}
	}
}

// ended closes the connection, unless the client has ended the subscription.
func (f *subscriber) ended(c *conn, sub *events.Subscription) {
	if sub.Slow() {
		c.s.Cut.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub == f {
		c.raw.Close()
	}
}

// publish writes ev once for each subscription that it matches.
func (f *subscriber) publish(c *conn, ev *events.Event) {
	rule, channel := ev.Rule, string(ev.Type)
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
	}
	f.name = append(f.name[:0], channel...)
	f.send(c, ev)
	if rule != "" {
		f.name = append(append(f.name, ':'), rule...)
		f.send(c, ev)
	}
}

// send writes ev for the subscriptions to the channel f.name.
func (f *subscriber) send(c *conn, ev *events.Event) {
	if has(f.channels, f.name) {
		c.w.Push(3)
		c.w.BulkString("message")
		c.w.Bulk(f.name)
		c.w.Bulk(ev.JSON)
	}
	for _, p := range f.patterns {
		if keys.Glob(p, f.name) {
			c.w.Push(4)
			c.w.BulkString("pmessage")
			c.w.BulkString(p)
			c.w.Bulk(f.name)
			c.w.Bulk(ev.JSON)
		}
	}
}
