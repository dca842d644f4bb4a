package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
)

// readerAttacks are by clients that send commands and do not read.
var readerAttacks = []attack{
	{"subscribers that do not read", nil, silentSubscribers, fault{"internal/server/events/hub.go", "decisions that begin bans take", []string{"	h.events.Add(1)\n", "	h.events.Add(1)\n	for range h.n.Load() {\n		(&Event{Event: ev}).encode()\n	}\n"}}},
	{"clients that do not read", nil, silentClients, fault{"internal/server/respapi/reaper.go", "were not closed", []string{
		"began != 0 && now", "began > 1<<31 && now",
		"p == partial && now", "p == partial && since > 1<<31 && now", // what such a client sends last is half a command
	}}},
	{"watchers that do not read", nil, silentWatchers, fault{"internal/server/respapi/reaper.go", "were not closed", []string{"began != 0 && now", "began > 1<<31 && now"}}},
}

// silentSubscribers subscribes to events and does not read, while decisions begin bans.
func silentSubscribers(h *attacked) {
	var next atomic.Int64
	bans := func(c *talker, n int) time.Duration { // begins n bans, pipelined
		began := time.Now()
		for range n / 100 {
			c.buf = c.buf[:0]
			for range 50 {
				i := next.Add(1)
				client := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
				c.buf = resp.AppendCommand(c.buf, "CHECK", "client", client, "path", "/knock")
				c.buf = resp.AppendCommand(c.buf, "CHECK", "client", client, "path", "/knock")
			}
			must.Get(c.Write(c.buf))(h)
			for range 100 {
				must.Get(c.replies.Next())(h)
			}
		}
		return time.Since(began)
	}
	const n = 1600
	healthy, control := h.healthy(), h.control.dial()
	bans(healthy, n)
	bans(control, n)
	stop := make(chan struct{})
	var subscribed atomic.Int64
	var took, quiet time.Duration
	h.during(func() {
		go func() {
			for end := time.Now().Add(10 * time.Second); subscribed.Load() < attackConns && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			bans(healthy, n)
			time.Sleep(500 * time.Millisecond) // what the kernels keep for them is full then
			var both sync.WaitGroup
			both.Go(func() { took = bans(healthy, n) })
			both.Go(func() { quiet = bans(control, n) })
			both.Wait()
			close(stop)
		}()
		h.attackers(attackConns, func(i int) {
			addr, text := h.resp, "SUBSCRIBE bans\r\n"
			if i%2 == 0 {
				addr, text = h.http, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
			}
			if conn := h.open(addr); conn != nil {
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				_, _ = conn.Write([]byte(text))
				_, _ = conn.Read(make([]byte, 64))
			}
			subscribed.Add(1)
			<-stop
		})
	})
	h.Logf("%d bans begin within %v beside %d subscribers that do not read; on the control %v", n/2, took, attackConns, quiet)
	if most := h.most(leastLatency, quiet); took > most {
		h.Errorf("decisions that begin bans take %v beside subscribers that do not read; want at most %v", took, most)
	}
}

// silentClients requests large answers and reads nothing.
func silentClients(h *attacked) {
	commands := strings.Repeat(string(resp.AppendCommand(nil, "ECHO", strings.Repeat("x", 60_000))), 20)
	requests := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
	h.during(func() {
		h.attackers(attackConns, func(i int) {
			addr, text := h.resp, commands
			if i%2 == 0 {
				addr, text = h.http, requests
			}
			conn := h.open(addr)
			if conn == nil {
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(maxHeld))
			for {
				if _, err := conn.Write([]byte(text)); err != nil {
					if errors.Is(err, os.ErrDeadlineExceeded) {
						h.held.Add(1)
					}
					return
				}
			}
		})
	})
}

// silentWatchers watches hot keys and does not read, while keys of 1 KB become hot: more of them than the kernels can keep
// for a watcher.
func silentWatchers(h *attacked) {
	const together, enough = 20, 16_000 // keys in a report, and in all
	h.during(func() {
		var (
			reported atomic.Int64
			stop     atomic.Bool
			reports  sync.WaitGroup
		)
		reports.Go(func() {
			c := h.healthy()
			for !stop.Load() {
				args := []string{"HOT.REPORT", "page"}
				for i := range together {
					args = append(args, fmt.Sprintf("/%d%s", reported.Load()+int64(i), strings.Repeat("x", 1000)), "1000000", "0")
				}
				if v, err := c.do(args...); err != nil && v.Err() == nil {
					h.Error(err)
					return
				}
				reported.Add(together)
			}
		})
		h.attackers(200, func(int) {
			conn := h.open(h.resp)
			if conn == nil {
				return
			}
			defer conn.Close()
			_ = conn.(*net.TCPConn).SetReadBuffer(4096)
			_, _ = conn.Write([]byte("HOT.WATCH\r\n"))
			// The output of the server before it closed the connection can still be read: a write fails afterwards.
			var full time.Time // when enough was reported
			for ; full.IsZero() || time.Since(full) < maxHeld; time.Sleep(100 * time.Millisecond) {
				if _, err := conn.Write([]byte("PING\r\n")); err != nil {
					return
				}
				if full.IsZero() && reported.Load() >= enough {
					full = time.Now()
				}
			}
			h.held.Add(1)
		})
		stop.Store(true)
		reports.Wait()
	})
}
