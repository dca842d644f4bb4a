package latelyredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// longForm reports whether outages last as long as in production, and latencies are printed:
//
//	LATELY_LONG=1 go test ./latelyredis -run 'Stalled|Killed' -v
func longForm() bool { return os.Getenv("LATELY_LONG") != "" }

// asServed makes a client give up connections as lately serve does.
func asServed(o *rueidis.ClientOption) {
	o.Dialer.Timeout, o.ConnWriteTimeout = time.Second, 2*time.Second
}

// A stream is events at a steady rate, whatever happens to earlier ones.
type stream struct {
	limiter *ratelimit.Limiter
	every   time.Duration
	workers int

	start   time.Time
	next    atomic.Int64
	ends    atomic.Bool
	all     sync.WaitGroup
	allowed atomic.Int64
	away    atomic.Int64 // failed at once
	waited  atomic.Int64 // failed otherwise
	decided atomic.Int64

	mu    sync.Mutex
	most  int             // goroutines
	since time.Time       // when latencies are of interest, or zero
	took  []time.Duration // from when an event was due until it was decided
}

// run begins the stream. stop ends it.
func (s *stream) run() {
	s.start = time.Now()
	for range s.workers {
		s.all.Go(func() {
			for !s.ends.Load() {
				due := s.start.Add(time.Duration(s.next.Add(1)) * s.every)
				time.Sleep(time.Until(due))
				s.decide(due)
			}
		})
	}
}

func (s *stream) decide(due time.Time) {
	var e match.Event
	e.SetString(match.Path, "/")
	d := s.limiter.Take(&e)
	took := time.Since(due)
	switch {
	case errors.Is(d.Err, latelyredis.ErrAway):
		s.away.Add(1)
	case d.Err != nil:
		s.waited.Add(1)
	}
	if d.Allowed {
		s.allowed.Add(1)
	}
	s.decided.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, runtime.NumGoroutine())
	if !s.since.IsZero() && due.After(s.since) {
		s.took = append(s.took, took)
	}
}

// answered returns how many events Redis has decided.
func (s *stream) answered() int64 { return s.decided.Load() - s.away.Load() - s.waited.Load() }

// goroutines returns the most since it was called before.
func (s *stream) goroutines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.most = 0 }()
	return s.most
}

// measure begins to note latencies.
func (s *stream) measure(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = since
}

// latencies returns the recorded latencies, in order.
func (s *stream) latencies() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	return s.took
}

func (s *stream) stop() {
	s.ends.Store(true)
	s.all.Wait()
}

// TestStalled stops the server under 2,000 events a second: all are decided, next to none waits for its deadline, and
// hardly any goroutine is left behind. The store decides again as soon as the server goes on. Without the breaker,
// goroutines pile up.
func TestStalled(t *testing.T) {
	const limit, before, more = 1000, 200, 200
	stall := 3 * time.Second // longer than a connection lasts without answers
	if longForm() {
		stall = 30 * time.Second
	}
	server := own(t)
	rules := set(t, lasting(time.Hour, limited("r", match.MustKey("path"), ratelimit.Sliding, limit)))
	store := newStore(t, server.client(t, asServed), rules, prefixed())
	l := defaultLimiter(t, rules, store)
	eventually(t, "the store has read the list", store.Read)
	s := &stream{limiter: l, every: time.Second / 2000, workers: 100}
	s.run()
	defer s.stop()
	eventually(t, "load", func() bool { return s.decided.Load() >= before })
	baseline := s.goroutines()

	server.Process().Signal(syscall.SIGSTOP)
	defer server.Process().Signal(syscall.SIGCONT)
	stopped, first, waited := time.Now(), s.decided.Load(), s.waited.Load()
	s.measure(stopped.Add(time.Second))
	events := int64(stall / s.every)
	eventually(t, "as many events are decided as came", func() bool { return s.decided.Load() >= first+events })
	s.measure(time.Time{})
	lasted, most := time.Since(stopped), s.goroutines()
	waited, away, allowed := s.waited.Load()-waited, s.away.Load(), s.allowed.Load()
	// One breaker is about all calls, another about the slot of the key: each tries in turn.
	if trials := 2 * (int64(lasted/(250*time.Millisecond)) + 1); waited > 20+int64(s.workers)+trials || away < events/2 {
		t.Errorf("of %d calls in %v %d waited and %d failed at once, want that at most %d wait", events, lasted, waited, away, 20+int64(s.workers)+trials)
	}
	if allowed != limit {
		t.Errorf("%d are allowed until the server goes on, want the limit, %d", allowed, limit)
	}
	if most > baseline+more {
		t.Errorf("%d goroutines, and %d while the server was stopped, want at most %d more", baseline, most, more)
	}
	t.Logf("stopped for %v: %d events, %d waited; %d goroutines more than %d", lasted.Round(time.Millisecond), events, waited, most-baseline, baseline)
	if took := s.latencies(); len(took) > 0 { // on a slow machine, none was due after the first second
		t.Logf("from the first second on p50 %v, p99 %v, at most %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}

	answered := s.answered()
	server.Process().Signal(syscall.SIGCONT)
	eventually(t, "the store decides again", func() bool { return s.answered() >= answered+100 })
	t.Logf("decides again %v after it went on", time.Since(stopped)-lasted)

	store.NeverAway()
	server.Process().Signal(syscall.SIGSTOP)
	eventually(t, "goroutines pile up without a breaker", func() bool { return runtime.NumGoroutine() > baseline+more })
}

// TestDeadlineWhileConnecting has one call connect, to a server that does not accept connections:
// others end with their contexts meanwhile, but for some in the first moment.
func TestDeadlineWhileConnecting(t *testing.T) {
	server := own(t)
	rules := anyRules(t)
	var hangs atomic.Bool
	connecting := make(chan struct{}, 1)
	client := server.client(t, func(o *rueidis.ClientOption) {
		dial := o.DialCtxFn
		o.Dialer.Timeout, o.PipelineMultiplex = time.Hour, -1 // one connection
		o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			if !hangs.Load() {
				return dial(ctx, address, d, c)
			}
			select {
			case connecting <- struct{}{}:
			default:
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	store := quiet(t, client, rules, prefixed())
	if r := take(context.Background(), store, rules, "k"); r.Err != nil {
		t.Fatal(r.Err)
	}
	hangs.Store(true)
	server.Process().Kill()
	ctx, cancel := context.WithCancel(context.Background())
	var first sync.WaitGroup
	defer first.Wait()
	defer cancel()
	first.Go(func() {
		for ctx.Err() == nil {
			take(ctx, store, rules, "k")
		}
	})
	<-connecting
	eventually(t, "a call ends with its context while another connects", func() bool {
		ended := make(chan error, 1)
		go func() {
			bounded, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			ended <- take(bounded, store, rules, "k").Err
		}()
		select {
		case err := <-ended:
			return errors.Is(err, context.DeadlineExceeded)
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
}

// TestSlowConnect has connecting take longer than a call may: the store connects again nevertheless.
func TestSlowConnect(t *testing.T) {
	server, rules := own(t), anyRules(t)
	client := server.client(t, func(o *rueidis.ClientOption) {
		dial := o.DialCtxFn
		o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			select {
			case <-time.After(100 * time.Millisecond):
				return dial(ctx, address, d, c)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	store := quiet(t, client, rules, prefixed())
	server.Do(t, "CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES")
	eventually(t, "the store decides", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		return take(ctx, store, rules, "k").Err == nil
	})
}

// TestExplicitTime has Redis away: the local memory decides at the caller's time.
func TestExplicitTime(t *testing.T) {
	s := own(t)
	rules := anyRules(t)
	store := quiet(t, s.client(t), rules, prefixed())
	s.Process().Kill()
	const asked = 12345
	r := &latelyredis.Request{Set: rules, Now: asked, Cost: 1, Subjects: []latelyredis.Subject{about(0, "k")}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if store.Decide(ctx, []*latelyredis.Request{r}); r.Err == nil || r.Now != asked {
		t.Errorf("%v at %d, want an error, and the requested time, %d", r.Err, r.Now, asked)
	}
}
