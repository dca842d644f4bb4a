package respapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// half returns a command of that many bytes without its end.
func half(bytes int) string {
	arg := fmt.Sprintf("$60000\r\n%s\r\n", strings.Repeat("x", 60_000))
	return fmt.Sprintf("*100\r\n%s", strings.Repeat(arg, bytes/60_000+1))[:bytes]
}

// TestHalfSentCommands has many connections that send half of a large command: they take no more than the budget, those
// without memory receive an error, and a client with small commands is served.
func TestHalfSentCommands(t *testing.T) {
	budget := access.NewBudget(2 << 20)
	s := start(t, Config{Budget: budget}, false)
	healthy := s.dial()
	healthy.want("PING", "+PONG")
	const n = 40
	clients := make([]*caller, n)
	for i := range clients {
		clients[i] = s.dial()
		clients[i].want("PING", "+PONG")
		clients[i].conn.Write([]byte(half(300_000)))
	}
	refused := make(chan string, n)
	for _, c := range clients {
		go func() {
			v, err := c.r.Next()
			if err != nil {
				refused <- err.Error()
				return
			}
			refused <- v.Text
		}()
	}
	for range n - 8 { // some are within the budget
		if got := <-refused; got != "" && !strings.Contains(got, "too many large commands") && !strings.Contains(got, "reset") {
			t.Errorf("a half-sent command is answered %q", got)
		}
	}
	if _, used := budget.Stats(); used > 2<<20 || used < 1<<19 {
		t.Errorf("%d bytes are taken", used)
	}
	healthy.want("TAKE login a", "[1 3 2 …")
	for _, c := range clients {
		c.conn.Close()
	}
	until(t, "all is given back", func() bool { _, used := budget.Stats(); return used == 0 })
}

// TestClientsNotReading has connections that request much and read nothing: they take no more than the budget, and are
// closed.
func TestClientsNotReading(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes 5 seconds")
	}
	budget := access.NewBudget(1 << 20)
	s := start(t, Config{Budget: budget}, false)
	for range 80 { // a budget is spent by 17 that wait at one time, until each is closed after writeTime
		c := s.dial()
		go func() {
			ask := encode("ECHO " + strings.Repeat("x", 60_000))
			for {
				if _, err := c.conn.Write(ask); err != nil {
					return
				}
			}
		}()
	}
	until(t, "there is no memory left", func() bool { return s.Overloaded.Load() > 0 })
	deadline := time.Now().Add(writeTime + time.Minute)
	for s.Open() > 0 {
		if _, used := budget.Stats(); used > 1<<20 {
			t.Fatalf("%d bytes are taken", used)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still open", s.Open())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, used := budget.Stats(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}
