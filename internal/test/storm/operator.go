//go:build linux

package storm

import (
	"context"
	"math/rand/v2"
	"time"
)

// handKeys are the keys that are banned by hand only. Each has one operator at a time.
var handKeys = []string{"198.51.100.1", "198.51.100.2", "198.51.100.3"}

const (
	verbBan   = "BAN"
	verbUnban = "UNBAN"
)

// operate bans a key and ends its ban in turn, on any server.
func (r *run) operate(ctx context.Context, random *rand.Rand, key string) {
	banned := false
	for ctx.Err() == nil {
		time.Sleep(time.Duration(50+random.IntN(700)) * time.Millisecond)
		s := r.servers[random.IntN(len(r.servers))]
		verb := verbBan
		if banned && random.IntN(4) > 0 {
			verb = verbUnban
		}
		if ctx.Err() != nil {
			return
		}
		banned = r.byHand(s, verb, key) && verb == verbBan
	}
}

// byHand bans a key or ends its ban, and reports whether that was acknowledged.
func (r *run) byHand(s *server, verb, key string) bool {
	call := Call{Verb: verb, Rule: byHand, Key: key, Server: s.index, Life: s.alive(), By: "RESP", Start: r.now()}
	args := []string{verb, byHand, key}
	if verb == verbBan {
		args = append(args, "1h", "storm")
	}
	c, err := s.dial()
	if err == nil {
		defer c.Close()
		call.Start = r.now()
		values, failed := c.do(args...)
		if err = failed; err == nil {
			call.Changed = verb == verbBan || values[0].N > 0
		}
	}
	call.End = r.now()
	if call.Answered = err == nil; err != nil {
		call.Text = err.Error()
	}
	r.history.add(call)
	return err == nil
}

// probe requests decisions from any server about keys that are banned by hand, or may have been banned by the rule knock.
func (r *run) probe(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		s := r.servers[random.IntN(len(r.servers))]
		c, err := s.dial()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for range 20 {
			call := Call{Verb: verbTake, Rule: byHand, Key: pick(random, handKeys...), Cost: 1}
			if random.IntN(3) == 0 {
				call = Call{Verb: verbCheck, Client: call.Key, Path: "/by-hand", Cost: 1}
			}
			if ctx.Err() != nil || !r.judge(s, c, call) {
				break
			}
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		c.Close()
	}
}

// judge sends one call, and reports whether the connection can be used further.
func (r *run) judge(s *server, c *conn, call Call) bool {
	call.Server, call.Life, call.By, call.Start = s.index, s.alive(), "RESP", r.now()
	values, err := c.do(call.command()...)
	call.End = r.now()
	call.decided(values, err)
	r.history.add(call)
	return !broken(err)
}
