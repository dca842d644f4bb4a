package respapi

import (
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/server/hotkeys"
)

// hotChannel is the channel for the state of all hot keys. hot.watch:NAME is the channel
// for one rule.
const hotChannel = "hot.watch"

// A hotWatch is a subscription to the state of hot keys.
type hotWatch struct {
	*hotkeys.Watcher
	channel string
	push    bool // updates are pushes of the type hot, not messages of the channel
}

// ruleOf returns the rule of a channel of hot keys, "" for all.
func ruleOf(channel []byte) (rule string, ok bool) {
	rest, ok := strings.CutPrefix(string(channel), hotChannel)
	if !ok || rest == "" {
		return "", ok
	}
	return strings.CutPrefix(rest, ":")
}

// watches returns watches for the channels of hot keys among names, all of them or none.
func (c *conn) watches(kind string, names [][]byte) (all []*hotWatch, err error) {
	for _, n := range names {
		rule, ok := ruleOf(n)
		if !ok {
			continue
		}
		w, err := c.s.Engine.Hot().Watch(rule)
		if err != nil {
			for _, h := range all {
				h.Close()
			}
			return nil, err
		}
		all = append(all, &hotWatch{Watcher: w, channel: string(n), push: kind == hotChannel})
	}
	return all, nil
}

// watchHot subscribes to the state of hot keys. In version 3 its updates are pushes
// of a type of their own.
func watchHot(c *conn, args [][]byte) error {
	channel := []byte(hotChannel)
	if len(args) > 1 {
		channel = append(append(channel, ':'), args[1]...)
	}
	kind := "subscribe"
	if c.w.Version() == 3 {
		kind = hotChannel
	}
	return c.subscribe(kind, [][]byte{channel}, false)
}

// watch begins watches, each in place of one of the same channel.
func (f *subscriber) watch(all ...*hotWatch) {
	for _, h := range all {
		f.unwatch(h.channel)
		f.watches = append(f.watches, h)
	}
	f.wake()
}

// unwatch ends the watch of a channel, if there is one.
func (f *subscriber) unwatch(channel string) {
	f.watches = slices.DeleteFunc(f.watches, func(h *hotWatch) bool {
		if h.channel != channel {
			return false
		}
		h.Close()
		return true
	})
}

// wait returns a channel that is closed when a watch may have an update, or nil if there
// is no watch.
//
// REQUIRES: conn.mu.
func (f *subscriber) wait() (wake <-chan struct{}) {
	for _, h := range f.watches {
		wake = h.Wait()
		select {
		case <-wake:
			return wake
		default:
		}
	}
	return wake
}

// sendHot writes the updates that the watches have.
//
// REQUIRES: conn.mu.
func (f *subscriber) sendHot(c *conn) error {
	for _, h := range f.watches {
		u := h.Next()
		if u == nil {
			continue
		}
		for _, part := range u.Parts() {
			if h.push {
				c.w.Push(2)
				c.w.BulkString("hot")
			} else {
				c.w.Push(3)
				c.w.BulkString("message")
				c.w.BulkString(h.channel)
			}
			c.w.Bulk(part)
			if c.w.Full() {
				if err := c.w.Flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
