package respapi

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// A queued command is executed with the arguments that it came with, whatever they
// are.
func TestTransactionKeepsArguments(t *testing.T) {
	var q transaction
	var want []string
	for _, args := range [][]string{{"a"}, {"take", "", "\x00\xff"}, {"b", strings.Repeat("x", 70_000)}, {}, {"c", "d"}} {
		views := make([][]byte, len(args))
		for i := range args {
			views[i] = []byte(args[i])
		}
		q.add(views)
		want = append(want, fmt.Sprintf("%q", args))
		for _, v := range views {
			clear(v) // as the next command overwrites a read buffer
		}
	}
	var got []string
	for _, args := range q.commands {
		got = append(got, fmt.Sprintf("%q", args))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %.200s, want %.200s", got, want)
	}
}

// reserved returns the bytes of the budget that transactions hold. All connections
// wait.
func reserved(s *running) (n int) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.multi != nil {
			n += c.multi.bytes
		}
	}
	return n
}

// Queued commands are bounded per connection and in total, and their memory is
// given back however the transaction ends.
func TestTransactionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, true)
		c := s.dial()
		arg := strings.Repeat("x", 60<<10)
		c.want("MULTI", "+OK")
		n := 0
		for got := "+QUEUED"; got == "+QUEUED"; n++ {
			if got = c.do("ECHO " + arg); got != "+QUEUED" && !strings.HasPrefix(got, "-OVERLOAD the transaction has more than 1 MiB") {
				t.Fatalf("command %d: %.100s", n, got)
			}
		}
		if n < 10 || n > 20 {
			t.Errorf("the %dth command was one too many", n)
		}
		if left := reserved(s); left != 0 {
			t.Errorf("%d bytes are held for a transaction that has failed", left)
		}
		c.want("PING", "+QUEUED")
		c.want("EXEC", "-EXECABORT Transaction discarded because of previous errors.")
		c.want("PING", "+PONG")

		for _, end := range []string{"EXEC", "DISCARD", "RESET", "QUIT"} {
			c.want("MULTI", "+OK")
			c.want("ECHO "+arg, "+QUEUED")
			if held := reserved(s); held < len(arg) {
				t.Errorf("%d bytes are held", held)
			}
			c.do(end)
			synctest.Wait()
			if left := reserved(s); left != 0 {
				t.Errorf("%d bytes are held after %s", left, end)
			}
		}

		c = s.dial()
		limit, _ := s.Budget.Stats()
		s.Budget.Take(int(limit))
		c.want("MULTI", "+OK")
		c.want("PING", "-OVERLOAD too many large commands…")
		c.want("EXEC", "-EXECABORT …")
		s.Budget.Give(int(limit))
		c.want("MULTI", "+OK")
		c.want("ECHO "+arg, "+QUEUED")
		c.conn.Close()
		synctest.Wait()
		if _, left := s.Budget.Stats(); left != 0 {
			t.Errorf("%d bytes are held for a connection that has gone", left)
		}
	})
}

// A transaction whose replies are more than a write buffer answers all of them.
func TestTransactionWithManyReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Config{}, true).dial()
		arg := strings.Repeat("y", 10_000)
		c.want("MULTI", "+OK")
		for range 50 {
			c.want("ECHO "+arg, "+QUEUED")
		}
		if got := c.do("EXEC"); strings.Count(got, arg) != 50 {
			t.Errorf("%d replies of 50", strings.Count(got, arg))
		}
		c.want("PING", "+PONG")
	})
}

// Transactions of many clients take at most half of the memory of requests, so that a request of
// another listener finds some.
func TestTransactionsShareHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 << 20
		budget := access.NewBudget(limit)
		s := start(t, Config{Budget: budget}, true)
		arg := strings.Repeat("x", 60<<10)
		refused := 0
		for range 18 {
			c := s.dial()
			c.want("MULTI", "+OK")
			for range 10 {
				if got := c.do("ECHO " + arg); strings.HasPrefix(got, "-OVERLOAD too many large commands") {
					refused++
				}
			}
		}
		if held := reserved(s); held < limit/4 || held > limit/2 || refused == 0 {
			t.Errorf("transactions hold %d bytes of %d, and %d commands were refused", held, limit, refused)
		}
		if !budget.Take(limit / 2) {
			t.Error("other requests have less than half of the memory")
		}
	})
}

// A connection whose transaction is open for too long is closed, and its memory given back.
func TestUnfinishedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, true)
		arg := strings.Repeat("x", 60<<10)
		c := s.dial()
		c.want("HELLO 3", "%[…")
		c.want("SUBSCRIBE bans", `>["subscribe" "bans" 1]`)
		c.want("MULTI", "+OK")
		c.want("ECHO "+arg, "+QUEUED")
		for range 3 { // commands between do not make it younger
			time.Sleep(3 * time.Second)
			c.want("PING", "+QUEUED")
		}
		if held := reserved(s); held < len(arg) {
			t.Errorf("%d bytes are held after 9 seconds", held)
		}
		time.Sleep(2 * time.Second)
		if held := reserved(s); held != 0 {
			t.Errorf("%d bytes are held after 11 seconds", held)
		}
		if _, used := s.Budget.Stats(); used != 0 {
			t.Errorf("%d bytes of the budget are taken after 11 seconds", used)
		}
		if s.Cut.Load() != 1 || s.Open() != 0 {
			t.Errorf("%d connections were closed and %d are open; want 1 and 0", s.Cut.Load(), s.Open())
		}
		if n := s.Engine.Status().Cut; n != 0 {
			t.Errorf("%d subscribers did not read; want 0: this one had an open transaction", n)
		}

		c = s.dial()
		for _, end := range []struct{ command, answer string }{{"EXEC", "[+PONG]"}, {"DISCARD", "+OK"}, {"RESET", "+RESET"}} {
			c.want("MULTI", "+OK")
			c.want("PING", "+QUEUED")
			time.Sleep(6 * time.Second)
			c.want(end.command, end.answer)
		}
		time.Sleep(20 * time.Second)
		c.want("PING", "+PONG")
	})
}
