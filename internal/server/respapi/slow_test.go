package respapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// ends returns after how long the server closes what c is.
func (c *caller) ends() time.Duration {
	began := time.Now()
	for {
		if _, err := c.r.Next(); err != nil {
			return time.Since(began)
		}
	}
}

func within(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s: closed after %v; want %v to %v", what, d, least, most)
	}
}

// idleTime is how long a client may be idle by default.
const idleTime = 5 * time.Minute

// TestSlowClients has clients that do not go on, at a clock of their own.
func TestSlowClients(t *testing.T) {
	slack := 3 * tickEvery
	t.Run("says nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, Config{}, true).dial()
			within(t, t.Name(), c.ends(), greetTime, greetTime+slack)
		})
	})
	t.Run("does not say who it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tokens := testTokens(t, "")
			c := start(t, Config{Tokens: func() *access.Tokens { return tokens }}, true).dial()
			go func() {
				for {
					if _, err := io.WriteString(c.conn, "PING\r\n"); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			within(t, t.Name(), c.ends(), greetTime, greetTime+slack)
			time.Sleep(time.Second) // the writer finds out
		})
	})
	t.Run("a byte a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, Config{}, true).dial()
			c.want("PING", "+PONG")
			go c.drip()
			within(t, t.Name(), c.ends(), partialTime, partialTime+slack)
			time.Sleep(time.Second) // the writer finds out
		})
	})
	for _, idle := range []time.Duration{0, time.Second, 10 * time.Minute, -1} { // 0 is the default, -1 never
		t.Run(fmt.Sprintf("idle for %v", idle), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{Limits: access.Limits{IdleTimeout: idle}}, true)
				c := s.dial()
				c.want("PING", "+PONG")
				if idle < 0 {
					time.Sleep(20 * time.Minute)
					c.want("PING", "+PONG")
					return
				}
				idle := cmp.Or(idle, idleTime)
				time.Sleep(idle - min(idle/2, 10*time.Second))
				c.want("PING", "+PONG")
				within(t, t.Name(), c.ends(), idle, idle+slack)
				if n := s.Cut.Load(); n != 1 {
					t.Errorf("%d were cut; want 1", n)
				}
			})
		})
	}
	t.Run("idle but subscribed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, true)
			c := s.dial()
			c.want("SUBSCRIBE hot", `["subscribe" "hot" 1]`)
			time.Sleep(time.Hour)
			c.want("PING", `["pong" ""]`)
			c.want("UNSUBSCRIBE", `["unsubscribe" "hot" 0]`)
			within(t, t.Name(), c.ends(), idleTime, idleTime+slack)
		})
	})
	t.Run("does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, true)
			c := s.dial()
			c.send("PING") // a pipe has no buffer: the answer waits for the reader
			time.Sleep(writeTime + slack)
			if _, err := c.r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after %v there is %v; want the end", writeTime+slack, err)
			}
		})
	})
	t.Run("subscribed and does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, true)
			stalled, healthy, admin := s.dial(), s.dial(), s.dial()
			stalled.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
			healthy.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
			admin.want("BAN login a 1h", "+OK")
			if got := healthy.next(); !strings.HasPrefix(got, `["message" "bans"`) {
				t.Errorf("the healthy one receives %s", got)
			}
			time.Sleep(writeTime + slack)
			if n := s.Subscribers.Load(); n != 1 {
				t.Errorf("%d subscribe; want 1", n)
			}
			if n := s.Engine.Status().Cut; n != 1 {
				t.Errorf("%d subscribers are counted as dropped; want 1", n)
			}
			admin.want("BAN login b 1h", "+OK")
			if got := healthy.next(); !strings.HasPrefix(got, `["message" "bans"`) {
				t.Errorf("the healthy one receives %s", got)
			}
		})
	})
}

// TestManySlowClients has two thousand clients that do not go on beside one that does:
// they are all cut, and it is answered meanwhile. In its long form they come over
// loopback.
//
//	LATELY_LONG=1 go test ./internal/server/respapi -run ManySlowClients -v
func TestManySlowClients(t *testing.T) {
	const n = 2000
	if long() {
		manySlowClients(t, n, false)
		return
	}
	synctest.Test(t, func(t *testing.T) { manySlowClients(t, n, true) })
}

func manySlowClients(t *testing.T, n int, pipe bool) {
	s := start(t, Config{}, pipe)
	healthy := s.dial()
	ask := func(going func(asked int) bool) (late []time.Duration) {
		for end := time.Now().Add(time.Minute); going(len(late)); time.Sleep(5 * time.Millisecond) {
			at := time.Now()
			healthy.want("PING", "+PONG")
			if late = append(late, time.Since(at)); at.After(end) {
				t.Fatalf("after a minute %d connections are open", s.Open())
			}
		}
		slices.Sort(late)
		return late
	}
	alone := ask(func(asked int) bool { return asked < 400 })
	var slow sync.WaitGroup
	t.Cleanup(slow.Wait) // when their connections are closed
	clients := make([]*caller, n)
	for i := range clients {
		clients[i] = s.dial()
		if i%10 < 4 {
			clients[i].want("PING", "+PONG")
		}
	}
	until(t, "all are connected", func() bool { return s.Open() == n+1 })
	for i, c := range clients {
		switch i % 10 {
		case 0:
			slow.Go(c.flood)
		case 1, 2, 3, 4, 5, 6: // half of them have asked something
			slow.Go(c.drip)
		default: // says nothing
		}
	}
	began := time.Now()
	beside := ask(func(int) bool { return s.Open() > 1 })
	t.Logf("%d slow clients, all gone after %v; a client meanwhile: p50 %v, p99 %v; alone: %v, %v", n, time.Since(began),
		beside[len(beside)/2], beside[len(beside)*99/100], alone[len(alone)/2], alone[len(alone)*99/100])
	if cut := s.Cut.Load(); cut < uint64(n) {
		t.Errorf("%d were cut; want %d", cut, n)
	}
}

// drip sends a command, a byte a second.
func (c *caller) drip() {
	for _, b := range []byte("*1\r\n$100\r\n" + strings.Repeat("x", 100)) {
		if _, err := c.conn.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// flood sends commands, reads no answer, and goes on until the connection is closed.
func (c *caller) flood() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		tcp.SetReadBuffer(4096)
	}
	ask := bytes.Repeat(encode("PING "+strings.Repeat("x", 100)), 100)
	for {
		if _, err := c.conn.Write(ask); err != nil {
			return
		}
	}
}

// TestDrainAnswersExecutedCommands ends a server under load and compares its decisions with the replies that clients
// received.
func TestDrainAnswersExecutedCommands(t *testing.T) {
	rounds := 5
	if long() {
		rounds = 50
	}
	for range rounds {
		s := start(t, Config{}, false)
		const clients = 16
		told := make(chan uint64, clients)
		for i := range clients {
			c := s.dial()
			burst := encode("TAKE per-client a")
			if i%2 == 1 {
				for range 5 {
					burst = append(burst, burst...)
				}
			}
			n := uint64(len(burst) / len(encode("TAKE per-client a")))
			c.want("PING", "+PONG") // a connection that was not accepted yet is refused
			go func() {
				defer c.conn.Close()
				var answers uint64
				for {
					if _, err := c.conn.Write(burst); err != nil {
						break
					}
					for range n {
						if _, err := c.r.Next(); err != nil {
							if err != io.EOF {
								t.Errorf("the end is %v; want a clean one between two answers", err)
							}
							told <- answers
							return
						}
						answers++
					}
				}
				told <- answers
			}()
		}
		for s.Engine.Totals().Allowed < 2000 {
			time.Sleep(time.Millisecond)
		}
		s.stop()
		var answers uint64
		for range clients {
			answers += <-told
		}
		if n := s.Engine.Totals().Allowed; n != answers {
			t.Errorf("%d were decided, %d answered", n, answers)
		}
	}
}

// TestDrainCutsTheStuck has a client that does not read hold up a server that ends.
func TestDrainCutsTheStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{Limits: access.Limits{ShutdownTimeout: time.Second}}, true)
		c, idle := s.dial(), s.dial()
		idle.want("PING", "+PONG")
		c.send("PING")
		began := time.Now()
		s.stop()
		within(t, "a stuck client", time.Since(began), time.Second, time.Second+tickEvery)
	})
}
