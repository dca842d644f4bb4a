package main

import (
	"fmt"

	"github.com/lately-go/lately/internal/resp"
)

// A row is one thing that is measured.
type row struct {
	subject *subject
	what    string
	floor   string // what it is compared with: the row of that name, if any
	at      int    // decisions that are asked for at once
	ask     func(load) (answers, error)
	samples []sample
}

// The floors: a server that adds to a number, and one that answers over HTTP and does
// nothing else.
const (
	incr = "INCR"
	echo = "POST /, no decision"
)

// rowsOf returns the rows of our listeners and of what they are compared with. redis
// may be nil.
func rowsOf(lately, echoes, redis *subject) (rows []*row) {
	add := func(s *subject, what, floor string, w wire) {
		rows = append(rows, &row{subject: s, what: what, floor: floor, at: w.at, ask: w.ask})
	}
	ping := func(string) []byte { return resp.AppendCommand(nil, "PING") }
	count := func(key string) []byte { return resp.AppendCommand(nil, "INCR", key) }
	take := func(key string) []byte { return resp.AppendCommand(nil, "TAKE", "per-client", key) }
	check := func(key string) []byte { return resp.AppendCommand(nil, "CHECK", "client", key) }
	charge := func(key string) []byte { return resp.AppendCommand(nil, "CHARGE", "per-client", key) }
	reserve := func(key string) []byte { return resp.AppendCommand(nil, "RESERVE", "per-client", key) }
	for _, at := range []int{1, 100} {
		if redis != nil {
			add(redis, "PING", incr, pipelined(redis.addr, at, "+PONG", 1, ping))
			add(redis, incr, incr, pipelined(redis.addr, at, ":", 1, count))
		}
		add(lately, "PING", incr, pipelined(lately.addr, at, "+PONG", 1, ping))
		add(lately, "TAKE", incr, pipelined(lately.addr, at, "*", 9, take))
		add(lately, "CHECK", incr, pipelined(lately.addr, at, "*", 9, check))
		add(lately, "CHARGE", incr, pipelined(lately.addr, at, "+OK", 1, charge))
		add(lately, "RESERVE", incr, pipelined(lately.addr, at, "*", 12, reserve))
	}
	const (
		eventBody = `{"event":{"client":"%s","path":"/x"},"cost":1}`
		takeBody  = `{"rule":"per-client","key":"%s","cost":1}`
	)
	for _, at := range []int{1, 100} {
		add(echoes, echo, echo, posted(echoes.web, fmt.Sprintf("/%d", at), at, 6, eventBody, "events"))
		add(lately, "POST /v1/check", echo, posted(lately.web, "/v1/check", at, 11, eventBody, "events"))
		add(lately, "POST /v1/take", echo, posted(lately.web, "/v1/take", at, 11, takeBody, "takes"))
	}
	return rows
}
