package respapi

import "strings"

// hotChannel is the channel for the state of all hot keys. hot.watch:NAME is the channel
// for one rule.
const hotChannel = "hot.watch"

// ruleOf returns the rule of a channel of hot keys, "" for all.
func ruleOf(channel string) (rule string, ok bool) {
	rest, ok := strings.CutPrefix(channel, hotChannel)
	if !ok || rest == "" {
		return "", ok
	}
	return strings.CutPrefix(rest, ":")
}

// watchHot subscribes to the state of hot keys. In version 3 its updates are pushes
// of a type of their own.
func watchHot(c *conn, args [][]byte) error {
	channel := hotChannel
	if len(args) > 1 {
		channel += ":" + string(args[1])
	}
	kind := "subscribe"
	if c.w.Version() == 3 {
		kind = hotChannel
	}
	return c.subscribe(kind, []string{channel}, false)
}

// wait returns a channel that is closed when a watch may have an update, or nil if there
// is no watch.
//
// REQUIRES: conn.mu.
func (f *subscriber) wait() (wake <-chan struct{}) {
	for i := range f.all {
		h := f.all[i].hot
		if h == nil {
			continue
		}
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
	for i := range f.all {
		s := &f.all[i]
		if s.hot == nil {
			continue
		}
		u := s.hot.Next()
		if u == nil {
			continue
		}
		for _, part := range u.Parts() {
			if s.push {
				c.w.Push(2)
				c.w.BulkString("hot")
			} else {
				c.w.Push(3)
				c.w.BulkString("message")
				c.w.BulkString(s.name)
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
