package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/resp"
)

const (
	// maxQueued bounds the commands of a connection that are not written yet, in bytes.
	maxQueued = 4 << 20

	// keepQueued is the largest write buffer that is kept, in bytes.
	keepQueued = 64 << 10
)

// errNotSent is the error of a command that was not sent at all.
var errNotSent = errors.New("not sent")

// errFull is the error of a command that found maxQueued bytes before it.
var errFull = fmt.Errorf("%w: more than %d MiB of commands are waiting to be sent", errNotSent, maxQueued>>20)

const (
	// maxPush bounds one string of an answer, in bytes: the longest are the updates of a watch.
	maxPush = 1 << 20

	// readBuffer is the bytes of answers that one read can get.
	readBuffer = 16 << 10
)

// A pipe is one connection, which all callers share. Commands that come while a write is in
// progress go out together in the next one; the answers come in the same order. It has two
// goroutines, that end when the connection is closed: write and read.
type pipe struct {
	conn net.Conn
	push func(values []resp.Value) // gets what the server sends unasked; or nil
	drop func(why error)           // called once, when the connection is closed
	wake chan struct{}             // wakes write

	mu       sync.Mutex
	out      []byte     // commands that no write has taken
	queue    []*request // in the order of the commands, without those that read has taken
	enqueued uint64     // requests so far
	taken    uint64     // requests that a write has taken so far
	idle     bool       // write waits for wake
	err      error      // why it is closed

	answered atomic.Uint64 // requests with an answer
	closed   chan struct{} // closed with err
	running  sync.WaitGroup
}

func newPipe(conn net.Conn, push func([]resp.Value)) *pipe {
	p := &pipe{conn: conn, push: push, drop: func(error) {}, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	p.running.Go(p.write)
	p.running.Go(p.read)
	return p
}

// ask sends a command and waits for its answer.
func (p *pipe) ask(ctx context.Context, parse parser, rule string, args ...string) (answer, error) {
	q := newRequest(parse, rule)
	if err := p.enqueue(q, args, nil); err != nil {
		requests.Put(q)
		return answer{}, err
	}
	return q.wait(ctx)
}

// tell sends a command without waiting for its answer, OK.
func (p *pipe) tell(args ...string) error {
	q := newRequest(parseOK, "")
	q.state.Store(abandoned)
	err := p.enqueue(q, args, nil)
	if err != nil {
		requests.Put(q)
	}
	return err
}

// enqueue queues a command of args, or one that is written already. The error is errNotSent
// or one that wraps it.
func (p *pipe) enqueue(q *request, args []string, command []byte) error {
	p.mu.Lock()
	switch {
	case p.err != nil:
		p.mu.Unlock()
		return errNotSent
	case len(p.out) > maxQueued:
		p.mu.Unlock()
		return errFull
	}
	if command != nil {
		p.out = append(p.out, command...)
	} else {
		p.out = resp.AppendCommand(p.out, args...)
	}
	p.queue = append(p.queue, q)
	p.enqueued++
	wake := p.idle
	p.idle = false
	p.mu.Unlock()
	if wake {
		p.wake <- struct{}{}
	}
	return nil
}

// onDrop sets drop, or calls it if the connection is already closed.
func (p *pipe) onDrop(drop func(why error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop = drop; p.err != nil {
		drop(p.err)
	}
}

// close closes the connection. Requests that have no answer fail: with errNotSent if no
// write has taken them, and otherwise with ErrUnanswered and why.
func (p *pipe) close(why error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = why
		close(p.closed)
		p.drop(why)
	}
	wake := p.idle
	p.idle = false
	p.mu.Unlock()
	p.conn.Close()
	if wake {
		p.wake <- struct{}{}
	}
}

// counts returns how many requests were sent, and how many answered.
func (p *pipe) counts() (sent, answers uint64) {
	answers = p.answered.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.enqueued, answers
}

// write writes commands until the connection is closed.
func (p *pipe) write() {
	var spare []byte
	for {
		buf, ok := p.take(spare[:0])
		if !ok {
			return
		}
		if _, err := p.conn.Write(buf); err != nil {
			p.close(err)
			return
		}
		if spare = buf; cap(buf) > keepQueued {
			spare = nil
		}
	}
}

// take waits for commands, and takes all of them. It returns false when the
// connection is closed.
func (p *pipe) take(spare []byte) (buf []byte, ok bool) {
	p.mu.Lock()
	for len(p.out) == 0 && p.err == nil {
		p.idle = true
		p.mu.Unlock()
		<-p.wake
		// Callers that were answered together send their next commands together: let
		// other goroutines run, and write once for all.
		runtime.Gosched()
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, false
	}
	buf, p.out, p.taken = p.out, spare, p.enqueued
	return buf, true
}

// read reads answers until the connection ends, and then fails all requests without an answer.
func (p *pipe) read() {
	r := resp.NewReplyReader(p.conn, resp.Limits{Bulk: maxPush, Command: maxPush + 1024, Buffer: readBuffer})
	var waiting []*request
	next := 0
	for {
		reply, err := r.Next()
		if err != nil {
			p.close(err)
			break
		}
		if reply[0].Kind == resp.KindPush {
			if p.push != nil {
				p.push(reply)
			}
			continue
		}
		if next == len(waiting) {
			waiting, next = p.exchange(waiting), 0
		}
		if next == len(waiting) {
			p.close(errors.New("not a lately server: an answer that nobody asked for"))
			break
		}
		q := waiting[next]
		waiting[next] = nil
		next++
		p.answered.Add(1)
		q.read(reply)
	}
	p.fail(waiting[next:])
}

// exchange returns the requests that were queued.
func (p *pipe) exchange(empty []*request) (queued []*request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued, p.queue = p.queue, empty[:0]
	return queued
}

// fail fails the requests that wait, oldest first, and those that were queued after them.
func (p *pipe) fail(waiting []*request) {
	p.mu.Lock()
	waiting = append(waiting, p.queue...)
	unsent := int(p.enqueued - p.taken)
	p.queue, p.out = nil, nil
	err := fmt.Errorf("%w: %w", ErrUnanswered, p.err)
	p.mu.Unlock()
	for i, q := range waiting {
		if i >= len(waiting)-unsent {
			q.end(answer{}, errNotSent)
		} else {
			q.end(answer{}, err)
		}
	}
}
