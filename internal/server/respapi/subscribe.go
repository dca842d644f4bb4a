package respapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/internal/server/hotkeys"
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

// A subscription is one channel or pattern.
type subscription struct {
	name    string
	pattern bool
	hot     *hotkeys.Watcher // of a channel of HOT.WATCH, or nil
	push    bool             // its updates are pushes of the type hot, not messages of the channel
}

// close ends the watch of hot keys, if there is one.
func (s *subscription) close() {
	if s.hot != nil {
		s.hot.Close()
	}
}

// A subscriber has the subscriptions of a connection, and a goroutine that writes events to
// it. It ends with its last subscription.
type subscriber struct {
	all     []subscription
	events  *events.Subscription // nil while only hot keys are watched
	changed chan struct{}        // wakes run after a change of all or events, and in the end
	name    []byte               // memory for the name of a channel
}

// count returns the number of subscriptions, of a subscriber that may be nil.
func (f *subscriber) count() int {
	if f == nil {
		return 0
	}
	return len(f.all)
}

// add adds a subscription, in place of the same one.
func (f *subscriber) add(s subscription) {
	f.remove(s.name, s.pattern)
	f.all = append(f.all, s)
}

// remove ends a subscription, if there is one.
func (f *subscriber) remove(name string, pattern bool) {
	f.all = slices.DeleteFunc(f.all, func(s subscription) bool {
		if s.name != name || s.pattern != pattern {
			return false
		}
		s.close()
		return true
	})
}

// subscribe is SUBSCRIBE and PSUBSCRIBE, and unsubscribe what ends them.
func subscribe(c *conn, args [][]byte) error {
	kind := strings.ToLower(string(args[0]))
	return c.subscribe(kind, copies(args[1:]), kind[0] == 'p')
}

func unsubscribe(c *conn, args [][]byte) error {
	kind := strings.ToLower(string(args[0]))
	return c.unsubscribe(kind, copies(args[1:]), kind[0] == 'p')
}

// subscribe adds subscriptions, all of them or none, and answers for each.
func (c *conn) subscribe(kind string, names []string, pattern bool) error {
	if n := c.sub.count() + len(names); n > maxSubscriptions {
		return badArg("%d subscriptions: must be up to %d on a connection", n, maxSubscriptions)
	}
	added := make([]subscription, len(names))
	var err error
	for i := 0; i < len(names) && err == nil; i++ {
		added[i], err = c.subscription(names[i], pattern, kind == hotChannel)
	}
	if err == nil {
		err = c.startSubscriber()
	}
	for _, s := range added {
		if err != nil {
			s.close()
			continue
		}
		if s.hot == nil && c.sub.events == nil {
			c.sub.events = c.s.Engine.Subscribe()
		}
		c.sub.add(s)
		c.confirm(kind, []byte(s.name))
	}
	if err == nil {
		c.sub.wake()
	}
	return err
}

// subscription returns a subscription to a channel or a pattern.
func (c *conn) subscription(name string, pattern, push bool) (s subscription, err error) {
	if name == "" || len(name) > maxChannel {
		return s, badArg("name of a channel: %d bytes: must be 1 to %d", len(name), maxChannel)
	}
	s = subscription{name: name, pattern: pattern, push: push}
	if rule, ok := ruleOf(name); ok && !pattern {
		s.hot, err = c.s.Engine.Hot().Watch(rule)
	}
	return s, err
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
func (c *conn) unsubscribe(kind string, names []string, pattern bool) error {
	if c.sub != nil && len(names) == 0 {
		for _, s := range c.sub.all {
			if s.pattern == pattern {
				names = append(names, s.name)
			}
		}
	}
	for _, name := range names {
		if c.sub != nil {
			c.sub.remove(name, pattern)
		}
		c.confirm(kind, []byte(name))
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
	if f.events != nil {
		f.events.Close()
	}
	for i := range f.all {
		f.all[i].close()
	}
	f.wake()
	c.s.Subscribers.Add(-1)
}

// confirm answers for one subscription that began or ended, or for none if name is nil.
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
		sub, hot = f.events, f.wait()
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

// send writes ev for the subscriptions to the channel f.name: those to patterns come last.
func (f *subscriber) send(c *conn, ev *events.Event) {
	for _, patterns := range []bool{false, true} {
		for i := range f.all {
			s := &f.all[i]
			switch {
			case s.pattern != patterns:
				continue
			case !patterns && s.name == string(f.name):
				c.w.Push(3)
				c.w.BulkString("message")
			case patterns && keys.Glob(s.name, f.name):
				c.w.Push(4)
				c.w.BulkString("pmessage")
				c.w.BulkString(s.name)
			default:
				continue
			}
			c.w.Bulk(f.name)
			c.w.Bulk(ev.JSON)
		}
	}
}
