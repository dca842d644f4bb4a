package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/ratelimit"
)

// An answer is the answer of a server. Which fields are set depends on the command.
type answer struct {
	decision ratelimit.Decision
	n        int64
	id       string // of a reservation
}

// A parser reads an answer. rule is the rule in the request, so that its name need not be
// copied.
type parser func(rule string, reply []resp.Value) (answer, error)

// A request is a command under way: from the caller, who waits for done, to the reader of
// the pipe, which fills in the answer. One of the two gives it back to the pool: the caller
// after done, or the reader if the caller no longer waits.
type request struct {
	parse  parser
	rule   string
	done   chan struct{}
	then   func(error) // called at the end if nobody waits for done; or nil
	state  atomic.Uint32
	answer answer
	err    error
}

// The states of a request.
const (
	pending uint32 = iota
	answered
	abandoned // the caller no longer waits
)

var requests = newRequests()

func newRequests() *sync.Pool {
	return &sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}
}

func newRequest(parse parser, rule string) *request {
	q := requests.Get().(*request)
	q.parse, q.rule, q.then = parse, rule, nil
	q.state.Store(pending)
	return q
}

// read fills in the answer and wakes the caller.
func (q *request) read(reply []resp.Value) {
	if reply[0].Kind == resp.KindError {
		q.end(answer{}, errorOf(reply[0].Text))
	} else {
		q.end(q.parse(q.rule, reply))
	}
}

func (q *request) end(a answer, err error) {
	switch {
	case q.then != nil:
		q.then(err)
		requests.Put(q)
	case q.state.CompareAndSwap(pending, answered):
		q.answer, q.err = a, err
		q.done <- struct{}{}
	default:
		requests.Put(q)
	}
}

// wait returns the answer, or the error of ctx if it ends first.
func (q *request) wait(ctx context.Context) (answer, error) {
	select {
	case <-q.done:
	case <-ctx.Done():
		if q.state.CompareAndSwap(pending, abandoned) {
			return answer{}, fmt.Errorf("%w: %w", ErrUnanswered, context.Cause(ctx))
		}
		<-q.done
	}
	a, err := q.answer, q.err
	requests.Put(q)
	return a, err
}

// errorOf returns the error that a server answered: a code and a sentence.
func errorOf(text []byte) *Error {
	code, detail, _ := strings.Cut(string(text), " ")
	return &Error{Code: api.Code(code), Detail: detail}
}

var errReply = errors.New("not a lately server: the answer has another form")

// isIntegers reports whether all of reply are integers.
func isIntegers(reply []resp.Value) bool {
	return !slices.ContainsFunc(reply, func(v resp.Value) bool { return v.Kind != resp.KindInt })
}

// parseDecision reads the answer of TAKE: seven elements, or eight with a delay.
func parseDecision(rule string, reply []resp.Value) (answer, error) {
	if head := reply[0]; head.Kind != resp.KindArray || head.N < 7 || len(reply) < 8 ||
		!isIntegers(reply[1:6]) || reply[6].Kind != resp.KindBulk || !isIntegers(reply[7:]) {
		return answer{}, errReply
	}
	wire := api.Decision{
		Allowed: reply[1].N == 1, Limit: uint64(reply[2].N), Remaining: uint64(reply[3].N),
		RetryAfter: api.Millis(reply[4].N), ResetAfter: api.Millis(reply[5].N),
		Rule: rule, BannedUntil: api.Millis(reply[7].N),
	}
	if string(reply[6].Text) != rule {
		wire.Rule = string(reply[6].Text)
	}
	if len(reply) > 8 {
		wire.Delay = api.Millis(reply[8].N)
	}
	return answer{decision: decisionOf(&wire)}, nil
}

// parseThrottle reads the answer of CL.THROTTLE: five integers.
func parseThrottle(_ string, reply []resp.Value) (answer, error) {
	if reply[0].Kind != resp.KindArray || len(reply) != 6 || !isIntegers(reply[1:]) {
		return answer{}, errReply
	}
	seconds := func(v resp.Value) time.Duration { return (api.Millis(v.N) * 1000).Duration() }
	d := ratelimit.Decision{
		Allowed: reply[1].N == 0, Limit: uint64(reply[2].N), Remaining: uint64(reply[3].N),
		RetryAfter: seconds(reply[4]), ResetAfter: seconds(reply[5]),
	}
	switch {
	case d.Allowed:
		d.RetryAfter = 0
	case reply[4].N < 0:
		d.RetryAfter = ratelimit.Never
	}
	return answer{decision: d}, nil
}

// parseInt reads an integer.
func parseInt(_ string, reply []resp.Value) (answer, error) {
	if reply[0].Kind != resp.KindInt {
		return answer{}, errReply
	}
	return answer{n: reply[0].N}, nil
}

// parseOK reads the answer of a command that answers OK or PONG.
func parseOK(_ string, reply []resp.Value) (a answer, err error) {
	if reply[0].Kind != resp.KindSimple {
		err = errReply
	}
	return a, err
}

// parseHello reads the answer of HELLO: a map that describes the server.
func parseHello(_ string, reply []resp.Value) (a answer, err error) {
	for i, v := range reply {
		if i > 0 && string(v.Text) == "lately" && string(reply[i-1].Text) == "server" {
			return a, nil
		}
	}
	return a, errors.New("not a lately server: HELLO has another answer")
}
