package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/wait"
)

const (
	// ticks is how many times in FleetConfig.Timeout a connection is inspected.
	ticks = 8

	// quietTicks is after how many ticks without a command the server is asked for a sign
	// of life.
	quietTicks = 3

	// steady is how long a connection must have lasted for the next one to be tried at
	// once.
	steady = time.Second

	// maxRetry bounds the wait before another attempt to connect.
	maxRetry = 2 * time.Second
)

// errStalled is why a connection is closed whose server does not answer.
var errStalled = errors.New("the server does not answer")

// A link keeps a connection to one server. It is up while there is one, and down from a
// failed attempt, or an answer that is overdue, until an attempt succeeds. In between, while
// the first attempt or that after a loss is in progress, callers wait for it.
type link struct {
	dial  func(ctx context.Context) (net.Conn, error)
	hello []string                                 // the first command
	limit time.Duration                            // for an attempt, and for an answer
	push  func(values []resp.Value)                // gets what the server sends unasked; or nil
	begin func(ctx context.Context, p *pipe) error // what follows hello; or nil
	stop  context.CancelFunc                       // ends run
	live  atomic.Pointer[pipe]                     // nil unless the link is up

	running sync.WaitGroup // run

	mu     sync.Mutex
	trying chan struct{} // closed when the attempt that callers wait for has ended, or nil
	err    error         // why it is down
}

// start begins to connect.
func (l *link) start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.trying = stop, make(chan struct{})
	l.running.Go(func() { l.run(ctx) })
}

// close closes the connection and waits for the goroutines of l.
func (l *link) close() {
	l.stop()
	l.running.Wait()
}

// settle waits until what was sent is answered, but not longer than an answer may take, or
// than ctx.
func (l *link) settle(ctx context.Context) {
	p := l.live.Load()
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	for sent, _ := p.counts(); p.answered.Load() < sent; {
		select {
		case <-p.closed:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// run connects, inspects the connection until it ends, and connects again.
func (l *link) run(ctx context.Context) {
	defer l.setDown(errClosed)
	for failures := 0; ctx.Err() == nil; {
		p, err := l.connect(ctx)
		if err == nil {
			began := time.Now()
			l.setUp(p)
			err = l.inspect(ctx, p)
			p.running.Wait()
			if time.Since(began) >= steady {
				failures = 0
			}
			if l.expected() {
				continue
			}
		}
		l.setDown(err)
		failures++
		if wait.For(ctx, rand.N(wait.Backoff(firstWait, maxRetry, failures))) != nil {
			return
		}
	}
}

// connect makes a connection, in time.
func (l *link) connect(ctx context.Context) (*pipe, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, unwrap(err)
	}
	p := newPipe(conn, l.push)
	_, err = p.ask(ctx, parseHello, "", l.hello...)
	if err == nil && l.begin != nil {
		err = l.begin(ctx, p)
	}
	if err != nil {
		p.close(err)
		p.running.Wait()
		return nil, err
	}
	return p, nil
}

// inspect closes p when ctx ends or an answer is overdue, asks for a sign of life when there
// is nothing to do, and returns why p was closed.
func (l *link) inspect(ctx context.Context, p *pipe) error {
	ticker := time.NewTicker(l.limit / ticks)
	defer ticker.Stop()
	var mark uint64 // requests that must be answered next
	age := 0        // ticks since they were sent
	for ; ; age++ {
		select {
		case <-ctx.Done():
			p.close(errClosed)
			return errClosed
		case <-p.closed:
			return p.err
		case <-ticker.C:
		}
		sent, answers := p.counts()
		switch {
		case answers < mark:
			if age >= ticks {
				p.close(fmt.Errorf("%w: nothing came for %v", errStalled, l.limit))
			}
		case sent > mark:
			mark, age = sent, 0
		case age >= quietTicks:
			_ = p.tell("PING") // it fails if p is closed
			mark, age = sent+1, 0
		}
	}
}

// setUp lets callers use p, until it is closed. Then they wait for the next attempt, unless
// that must not be made at once.
func (l *link) setUp(p *pipe) {
	l.mu.Lock()
	l.live.Store(p)
	l.err = nil
	l.release()
	l.mu.Unlock()
	began := time.Now()
	p.onDrop(func(why error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.live.Store(nil)
		if l.err = why; !errors.Is(why, errStalled) && time.Since(began) >= steady {
			l.trying = make(chan struct{})
		}
	})
}

// setDown stores why there is no connection.
func (l *link) setDown(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = why
	l.release()
}

// release ends the wait of callers.
//
// REQUIRES: l.mu.
func (l *link) release() {
	if l.trying != nil {
		close(l.trying)
		l.trying = nil
	}
}

// expected reports whether callers wait for the next attempt.
func (l *link) expected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trying != nil
}

// down reports whether there is no connection, nor an attempt to wait for.
func (l *link) down() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trying == nil && l.live.Load() == nil
}

// get returns the connection. It waits for the attempt in progress, if there is one to wait
// for. If the link is down, the error is why.
func (l *link) get(ctx context.Context) (*pipe, error) {
	for {
		if p := l.live.Load(); p != nil {
			return p, nil
		}
		l.mu.Lock()
		trying, err, p := l.trying, l.err, l.live.Load()
		l.mu.Unlock()
		switch {
		case p != nil:
			return p, nil
		case trying == nil:
			return nil, err
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
		}
	}
}

// status reports whether the link is up, and if not, why.
func (l *link) status() (up bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live.Load() != nil, l.err
}
