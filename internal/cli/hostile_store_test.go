package cli

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// storeAttacks are of a Redis that misbehaves.
var storeAttacks = []attack{
	{"a store that stalls", withBadStore, stalledStore, fault{"ratelimit/limiter.go", "a client beside the attack", []string{"l.timeout = cmp.Or(c.StoreTimeout, storeTimeout)", "l.timeout = cmp.Or(0, time.Hour)"}}},
}

// What a badProxy does to the replies of Redis.
const (
	passReplies = iota
	delayReplies
	holdReplies
)

// A badProxy is between a server and its Redis.
type badProxy struct {
	address string
	redis   *redistest.Server
	mode    atomic.Int32
}

// newBadProxy returns a proxy of redis, which ends with the test.
func newBadProxy(t testing.TB, redis *redistest.Server) *badProxy {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &badProxy{address: listener.Addr().String(), redis: redis}
	var pipes sync.WaitGroup
	t.Cleanup(pipes.Wait)
	t.Cleanup(func() { p.mode.Store(passReplies); listener.Close() })
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pipe(conn)
		}
	})
	return p
}

// pipe passes commands on, and treats replies by the mode.
func (p *badProxy) pipe(client net.Conn) {
	defer client.Close()
	redis, err := p.redis.Dial()
	if err != nil {
		return
	}
	defer redis.Close()
	go func() {
		_, _ = io.Copy(redis, client)
		redis.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := redis.Read(buf)
		if err != nil {
			return
		}
		for p.mode.Load() == holdReplies {
			time.Sleep(10 * time.Millisecond)
		}
		if p.mode.Load() == delayReplies {
			time.Sleep(time.Second)
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// withBadStore starts a server whose store is behind a badProxy.
func withBadStore(h *attacked) []string {
	h.Helper()
	h.proxy = newBadProxy(h, redistest.Own(h.T))
	return []string{"--store", "redis://" + h.proxy.address}
}

// stalledStore is a store whose replies come a second late, and then not at all. The rules decide by themselves then, and with the store
// when it answers again.
func stalledStore(h *attacked) {
	h.isReady()
	h.during(func() {
		for _, mode := range []int32{delayReplies, holdReplies} {
			h.proxy.mode.Store(mode)
			time.Sleep(attackTime)
		}
	})
	h.proxy.mode.Store(passReplies)
	h.isReady()
}

// isReady waits until the server has its store. Its readiness needs decisions, which show that the store answers.
func (h *attacked) isReady() {
	h.Helper()
	c := h.healthy()
	if !eventually(func() bool {
		_, _ = c.do("CHECK", "client", "192.0.2.9", "path", "/")
		status, _ := h.get("/readyz")
		return status == http.StatusOK
	}) {
		_, why := h.get("/readyz")
		h.Errorf("the server is not ready with a store that answers: %s", why)
	}
}
