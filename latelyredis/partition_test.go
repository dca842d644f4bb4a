//go:build linux

package latelyredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/netnstest"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A parted is a server and a node that have a network each, and a cable between them.
type parted struct {
	server      *server
	there, here netnstest.Namespace // of the server, and of the node
	dials       atomic.Int64        // of the node
}

const (
	partedServer = "198.51.100.1"
	partedNode   = "198.51.100.2"
)

func newParted(t *testing.T) *parted {
	t.Helper()
	redistest.Needs(t)
	p := &parted{there: netnstest.New(t), here: netnstest.New(t)}
	p.there.Link(p.here, []string{partedServer + "/24"}, []string{partedNode + "/24"})
	t.Setenv(redistest.ProgramVariable, p.there.Use(redistest.Program()))
	p.server = own(t, "--bind", partedServer, "--port", "6379", "--protected-mode", "no")
	// The first packets may be lost, and are sent again after the timeout of a client.
	eventually(t, "the cable carries", func() bool {
		conn, err := p.here.Dial(t.Context(), &net.Dialer{Timeout: 5 * time.Second}, partedServer+":6379")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return p
}

// far returns a client that connects through the cable; others connect through the socket.
func (p *parted) far(t *testing.T) rueidis.Client {
	t.Helper()
	return p.server.client(t, asServed, func(o *rueidis.ClientOption) {
		o.PipelineMultiplex = -1 // one connection, which is there before the cut
		o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			p.dials.Add(1)
			return p.here.Dial(ctx, d, partedServer+":6379")
		}
	})
}

// cut drops packets both ways.
func (p *parted) cut() (heal func()) {
	there, here := p.there.Cut(), p.here.Cut()
	return func() {
		there()
		here()
	}
}

// taken is the result of events of one key at a node.
type taken struct{ allowed, waited int }

// takes has events of a path decided, together if they may have to wait for their deadlines.
func takes(l *ratelimit.Limiter, path string, n int, together bool) (all taken) {
	var mu sync.Mutex
	var done sync.WaitGroup
	one := func() {
		d := l.Take(event(match.Path, path))
		mu.Lock()
		defer mu.Unlock()
		if d.Allowed {
			all.allowed++
		}
		if d.Err != nil && !errors.Is(d.Err, latelyredis.ErrAway) {
			all.waited++
		}
	}
	for range n {
		if !together {
			one()
			continue
		}
		done.Go(one)
	}
	done.Wait()
	return all
}

// TestPartition cuts one of three nodes off, without an error, and heals that. It allows its share of a limit meanwhile,
// and all nodes together no more than the limit and that share. Bans in its copy hold, and it receives the others
// afterwards. Events that it has allowed alone are not charged when it is back.
func TestPartition(t *testing.T) {
	const limit, share, early = 300, 100, 30
	p, config := newParted(t), prefixed()
	rules := set(t, lasting(time.Hour, limited("limit", match.MustKey("path"), ratelimit.Sliding, limit)), banning("flood", match.MustKey("host"), 0))
	var nodes []*latelyredis.Store
	var limiters []*ratelimit.Limiter
	for i, timeout := range []time.Duration{time.Minute, time.Minute, time.Second} {
		client := p.server.client(t)
		if i == 2 {
			client = p.far(t)
		}
		store := newStore(t, client, rules, config)
		l := must.Get(ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: timeout}))(t)
		nodes, limiters = append(nodes, store), append(limiters, l)
	}
	allKnown(t, nodes)
	far, all := limiters[2], 0
	for _, l := range limiters {
		all += takes(l, "/", early, false).allowed
		takes(l, "/other", early, false)
	}
	limiters[0].Take(event(match.Host, "before"))
	allCopied(t, nodes, "flood", "before")

	heal := p.cut()
	alone := takes(far, "/", 2*limit, true)
	other := takes(far, "/other", early, false)
	limiters[0].Take(event(match.Host, "during"))
	eventually(t, "the other node learns of a ban", func() bool { return nodes[1].Copied("flood", "during") })
	for _, l := range limiters[:2] {
		all += takes(l, "/", limit, false).allowed
	}
	if alone.allowed == 0 || alone.allowed > share || alone.waited == 0 {
		t.Errorf("%d allowed by the node that is cut off, in %d calls, want at most its share, %d", alone.allowed, alone.waited, share)
	}
	for range 100 {
		if d := far.Take(event(match.Host, "before")); d.Allowed || d.Err != nil {
			t.Fatalf("%+v by the node that is cut off, want that its copy of the ban refuses", d)
		}
	}
	if nodes[2].Copied("flood", "during") {
		t.Error("the node that is cut off has learned of a ban")
	}
	left := func() uint64 { return peek(t, nodes[0], rules, about(0, "/other")).Remaining }
	before := left()

	heal()
	eventually(t, "the node is back, and refuses", func() bool {
		d := far.Take(event(match.Path, "/"))
		if d.Allowed {
			alone.allowed++
		}
		return d.Err == nil && !d.Allowed
	})
	if all += alone.allowed; all < limit || all > limit+share {
		t.Errorf("%d allowed by all nodes, want the limit, and at most a share more: %d to %d", all, limit, limit+share)
	}
	eventually(t, "the node has learned of the ban", func() bool { return nodes[2].Copied("flood", "during") })
	t.Logf("%d allowed by all, %d of them alone, which asked %d times; %d of %d charged later", all, alone.allowed, alone.waited, before-left(), other.allowed)
	// A request that was given up may still arrive.
	if charged := before - left(); other.allowed == 0 || charged > uint64(other.waited) {
		t.Errorf("%d of what the node has allowed alone, %d, was charged, want at most what it asked for, %d", charged, other.allowed, other.waited)
	}
}

// TestBatchedPartition loses all answers to a node with Batched, until its client has given up the connection. It sends its
// events again when it is back: each is counted once.
func TestBatchedPartition(t *testing.T) {
	const limit = 1000
	p, config := newParted(t), batched()
	rules := set(t, lasting(time.Hour, limited("limit", match.MustKey("path"), ratelimit.Exact, limit)))
	far := newStore(t, p.far(t), rules, config)
	eventually(t, "the node has read the list", far.Read)
	near := quiet(t, p.server.client(t), rules, config)
	left := func() int { return int(peek(t, near, rules, about(0, "k")).Remaining) + 1 } // as if it had been taken
	ask(t, far, rules, about(0, "k"))
	allowed := 1
	allow := func() bool {
		known := far.DecideKnown(one(rules, about(0, "k")))
		if known {
			allowed++
		}
		return known
	}
	dials := p.dials.Load()
	heal := p.here.Cut()
	for allow() {
	}
	if alone := allowed - 1; alone < 1 || alone > limit/8 {
		t.Errorf("%d allowed without an answer, want 1 to %d", alone, limit/8)
	}
	// Redis receives events, and its answers are lost, unless the machine is so busy that the connection is given up
	// before.
	eventually(t, "the client connects again", func() bool { return p.dials.Load() > dials })
	heal()
	eventually(t, "the node allows again, since it was answered", allow)
	eventually(t, "Redis is told of all", func() bool { return left() <= limit-allowed })
	far.Close()
	if got := left(); got != limit-allowed {
		t.Errorf("%d left after %d were allowed, want %d", got, allowed, limit-allowed)
	}
	t.Logf("%d allowed without an answer", allowed-1)
}
