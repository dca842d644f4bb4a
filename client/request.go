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

// A request is a command under way: from the caller, who waits for done, to the reader of
// the pipe, which fills in the answer. One of the two gives it back to the pool: the caller
// after done, or the reader if the caller no longer waits.
type request struct {
	parse func(q *request, reply []resp.Value) error
	name  string // the rule that was asked for, so that its name need not be copied
	done  chan struct{}
	then  func(*request) // called at the end if nobody waits for done; or nil
	state atomic.Uint32

	// The answer. What of it is set depends on parse.
	decision ratelimit.Decision
	n        int64
	err      error
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

func newRequest(parse func(*request, []resp.Value) error, name string) *request {
	q := requests.Get().(*request)
	q.parse, q.name, q.then, q.decision, q.n, q.err = parse, name, nil, ratelimit.Decision{}, 0, nil
	q.state.Store(pending)
	return q
}

// answer fills in the answer and wakes the caller.
func (q *request) answer(reply []resp.Value) {
	if reply[0].Kind == resp.KindError {
		q.err = errorOf(reply[0].Text)
	} else {
		q.err = q.parse(q, reply)
	}
	q.end()
}

// fail ends q with an error instead of an answer.
func (q *request) fail(err error) {
	q.err = err
	q.end()
}

func (q *request) end() {
	if q.then != nil {
		q.then(q)
		requests.Put(q)
		return
	}
	if q.state.CompareAndSwap(pending, answered) {
		q.done <- struct{}{}
	} else {
		requests.Put(q)
	}
}

// wait waits for the answer, and reports whether the caller has q back. If ctx ends first,
// it has not, and the error says so.
func (q *request) wait(ctx context.Context) (mine bool, err error) {
	select {
	case <-q.done:
		return true, q.err
	case <-ctx.Done():
	}
	if q.state.CompareAndSwap(pending, abandoned) {
		return false, fmt.Errorf("%w: %w", ErrUnanswered, context.Cause(ctx))
	}
	<-q.done
	return true, q.err
}

// again makes q, which the caller has back, ready to be sent another time.
func (q *request) again() {
	q.err = nil
	q.state.Store(pending)
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
func parseDecision(q *request, reply []resp.Value) error {
	if head := reply[0]; head.Kind != resp.KindArray || head.N < 7 || len(reply) < 8 ||
		!isIntegers(reply[1:6]) || reply[6].Kind != resp.KindBulk || !isIntegers(reply[7:]) {
		return errReply
	}
	wire := api.Decision{
		Allowed: reply[1].N == 1, Limit: uint64(reply[2].N), Remaining: uint64(reply[3].N),
		RetryAfter: api.Millis(reply[4].N), ResetAfter: api.Millis(reply[5].N),
		Rule: q.name, BannedUntil: api.Millis(reply[7].N),
	}
	if string(reply[6].Text) != q.name {
		wire.Rule = string(reply[6].Text)
	}
	if len(reply) > 8 {
		wire.Delay = api.Millis(reply[8].N)
	}
	q.decision = decisionOf(&wire)
	return nil
}

// parseThrottle reads the answer of CL.THROTTLE: five integers.
func parseThrottle(q *request, reply []resp.Value) error {
	if reply[0].Kind != resp.KindArray || len(reply) != 6 || !isIntegers(reply[1:]) {
		return errReply
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
	q.decision = d
	return nil
}

// parseInt reads an integer.
func parseInt(q *request, reply []resp.Value) error {
	if reply[0].Kind != resp.KindInt {
		return errReply
	}
	q.n = reply[0].N
	return nil
}

// parseOK reads the answer of a command that answers OK or PONG.
func parseOK(_ *request, reply []resp.Value) error {
	if reply[0].Kind != resp.KindSimple {
		return errReply
	}
	return nil
}

// parseHello reads the answer of HELLO: a map that says what the server is.
func parseHello(_ *request, reply []resp.Value) error {
	for i, v := range reply {
		if i > 0 && string(v.Text) == "lately" && string(reply[i-1].Text) == "server" {
			return nil
		}
	}
	return errors.New("not a lately server: HELLO has another answer")
}
