package latelyredis_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
	"github.com/lately-go/lately/latelyredis"
)

// A played is a connection whose server sends what a test scripts.
type played struct {
	net.Conn
	to     []byte // the client
	ended  bool
	closed bool
}

func (p *played) Write(b []byte) (int, error) { return len(b), nil }
func (p *played) Close() error                { p.closed = true; return nil }
func (p *played) RemoteAddr() net.Addr        { return &net.UnixAddr{Name: "test", Net: "unix"} }

func (p *played) Read(b []byte) (int, error) {
	if p.ended {
		return 0, io.EOF
	}
	n := copy(b, p.to)
	p.to = p.to[n:]
	return n, nil
}

// wire is a checked connection, and the server at its end.
type wire struct {
	net.Conn
	server *played
}

func newWire(damaged func(error)) *wire {
	p := new(played)
	return &wire{latelyredis.CheckedConn(p, damaged), p}
}

// send sends a command, in pieces of n bytes.
func (w *wire) send(n int, command string) {
	words := strings.Fields(command)
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	for part := range slices.Chunk(text, n) {
		w.Write(part)
	}
}

// receive has the server send text in pieces of n bytes, and returns what the client gets.
func (w *wire) receive(n int, text string) (got string, err error) {
	buf := make([]byte, 1<<20)
	for part := range slices.Chunk([]byte(text), n) {
		w.server.to = part
		n, err := w.Read(buf)
		got += string(buf[:n])
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

const (
	helloMap   = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"
	helloArray = "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n"
	confirmA   = ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	confirmB   = ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
	leaveA     = ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"
	messageA   = ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"
	noPing     = "-NOPERM User u has no permissions to run the 'ping' command\r\n"
)

// old returns a message as of version 2.
func old(message string) string { return "*" + message[1:] }

// switched is a message of Sentinel.
func switched(text string) string {
	return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%d\r\n%s\r\n", len(text), text)
}

// TestCheckedConn plays conversations: commands behind ">", and replies; only the last may be damaged.
func TestCheckedConn(t *testing.T) {
	for _, tt := range []struct {
		name string
		play []string
		want string // in the error for the last reply, or "" if it passes
	}{
		{"replies", []string{"> GET a", "$1\r\nb\r\n", "> GET a", "> GET b", "$-1\r\n", "*0\r\n"}, ""},
		{"a reply to no command", []string{"> GET a", "+OK\r\n", "+OK\r\n"}, "no command"},
		{"a reply before all commands", []string{"+OK\r\n"}, "no command"},
		{"a negative length", []string{"> GET a", "$-5\r\n"}, "not a reply"},
		{"a length of 2^63-1", []string{"> GET a", "$9223372036854775807\r\n"}, "invalid bulk length"},
		{"too many values", []string{"> GET a", "*2147483647\r\n"}, "too many values"},
		{"512 MiB", []string{"> GET a", "$536870912\r\n"}, "invalid bulk length"},
		{"as many values as there may be", []string{"> GET a", "*262143\r\n"}, ""},
		{"32 MiB", []string{"> GET a", "$33554000\r\n"}, ""},
		{"too deep", []string{"> GET a", strings.Repeat("*1\r\n", 40)}, "too deeply nested"},
		{"a push message within a reply", []string{"> GET a", "*1\r\n>1\r\n+a\r\n"}, "within a reply"},
		{"messages at any time", []string{messageA, "> GET a", messageA, ">2\r\n$10\r\ninvalidate\r\n_\r\n", "+OK\r\n", messageA}, ""},
		{"no message without subscription in version 2", []string{old(messageA)}, "no command"},
		{"subscriptions", []string{"> HELLO 3", helloMap, "> SUBSCRIBE a b", "> GET c", confirmA, confirmB, "+OK\r\n", leaveA}, ""},
		{"a confirmation of nothing", []string{confirmA}, "does not send then"},
		{"a confirmation instead of a reply", []string{"> GET a", confirmA}, "does not send then"},
		{"one confirmation too many", []string{"> SUBSCRIBE a", confirmA, confirmA}, "does not send then"},
		{"a confirmation without a channel", []string{"> SUBSCRIBE a", ">1\r\n$9\r\nsubscribe\r\n"}, "does not send then"},
		{"a subscription that is refused", []string{"> SUBSCRIBE a b", "> GET a", "-NOPERM no\r\n", "+OK\r\n", "+OK\r\n"}, "no command"},
		{"a subscription in a transaction", []string{"> SUBSCRIBE a", "+QUEUED\r\n"}, "not what the command answers"},
		{"subscriptions of version 2", []string{"> HELLO 2", helloArray, "> SUBSCRIBE a", old(confirmA), old(messageA), "> UNSUBSCRIBE a", "> PING", old(leaveA), "*2\r\n$4\r\npong\r\n$0\r\n\r\n"}, ""},
		{"a message of version 2 in version 3", []string{"> HELLO 3", helloMap, "> SUBSCRIBE a", confirmA, old(messageA)}, "no command"},
		{"version 3 that the server does not support", []string{"> HELLO 3", "-ERR unknown command\r\n", "> SUBSCRIBE a", old(confirmA), old(messageA)}, ""},
		{"the end of subscriptions", []string{"> UNSUBSCRIBE a", "> PING", "> GET a", leaveA, "+PONG\r\n", "+OK\r\n"}, ""},
		{"the end of subscriptions, refused", []string{"> UNSUBSCRIBE a", "> PING", "-NOPERM no\r\n", noPing, "> GET a", "+OK\r\n", "+OK\r\n"}, "no command"},
		{"the end of subscriptions without PING", []string{"> UNSUBSCRIBE a", "> PUNSUBSCRIBE", "> GET a", leaveA, leaveA, "+OK\r\n", "+OK\r\n"}, "no command"},
		{"a subscription behind the end of another", []string{"> SUBSCRIBE a", confirmA, "> UNSUBSCRIBE a", "> SUBSCRIBE b", leaveA, confirmB, "> GET a", "+OK\r\n"}, ""},
		{"another reply than PONG", []string{"> UNSUBSCRIBE a", "> PING", leaveA, "+OK\r\n"}, "not what the command answers"},
		{"another error than of PING", []string{"> UNSUBSCRIBE a", "> PING", "-NOPERM no\r\n", "-NOPERM no\r\n"}, "not what the command answers"},
		{"PING", []string{"> PING", "+PONG\r\n", "> PING hi", "$2\r\nhi\r\n", "> PING", "-NOAUTH no\r\n"}, ""},
		{"a reply to another command than PING", []string{"> PING", "$2\r\nhi\r\n"}, "not what the command answers"},
		{"the role", []string{"> ROLE", "*1\r\n$6\r\nmaster\r\n", "> ROLE", "-LOADING no\r\n"}, ""},
		{"a reply to another command than ROLE", []string{"> ROLE", "+PONG\r\n"}, "not what the command answers"},
		{"PING and ROLE in a transaction", []string{"> MULTI", "> PING", "> ROLE", "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n"}, ""},
		{"no role", []string{"> ROLE", "*0\r\n"}, "not what the command answers"},
		{"a primary", []string{"> SENTINEL GET-MASTER-ADDR-BY-NAME p", "*2\r\n$1\r\na\r\n$1\r\n1\r\n"}, ""},
		{"no primary", []string{"> SENTINEL GET-MASTER-ADDR-BY-NAME p", "*-1\r\n"}, ""},
		{"half of a primary", []string{"> sentinel get-master-addr-by-name p", "*1\r\n$1\r\na\r\n"}, "not what the command answers"},
		{"other sentinels", []string{"> SENTINEL SENTINELS p", "*0\r\n"}, ""},
		{"a move", []string{"> GET a", "-MOVED 1 127.0.0.1:6379\r\n"}, ""},
		{"a move to nowhere", []string{"> GET a", "-MOVED 1\r\n"}, "not what the command answers"},
		{"a question to nobody", []string{"> GET a", "-ERR ASK\r\n"}, "not what the command answers"},
		{"another primary", []string{switched("p 127.0.0.1 1 127.0.0.1 2")}, ""},
		{"another primary without a port", []string{switched("p 127.0.0.1 1 127.0.0.1")}, "does not send then"},
		{"another primary with a long name", []string{switched(strings.Repeat("p", 300))}, ""},
	} {
		for _, n := range []int{1, 7, 1 << 20} {
			errs := 0
			w := newWire(func(error) { errs++ })
			for i, s := range tt.play {
				if command, ok := strings.CutPrefix(s, "> "); ok {
					w.send(n, command)
					continue
				}
				got, err := w.receive(n, s)
				want := ""
				if i == len(tt.play)-1 {
					want = tt.want
				}
				switch {
				case want == "" && (err != nil || got != s):
					t.Errorf("%s: %q passed as %q, %v", tt.name, s, got, err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %q: %v, want an error with %q", tt.name, s, err, want)
				case want != "" && (got == s || errs != 1 || !w.server.closed):
					t.Errorf("%s: passed as %q, reported %d times, closed %v", tt.name, got, errs, w.server.closed)
				}
			}
		}
	}
}

// TestLostReply sends a command every 10 ms, while another is always answered late. If a reply is lost or repeated, the
// connection is closed within 1.5 seconds, and otherwise it is not.
func TestLostReply(t *testing.T) {
	const command, reply = "*1\r\n$4\r\nTIME\r\n", "*0\r\n"
	for want, owed := range map[string]int{ // how many replies the server has for two commands
		"a command without a reply": 1,
		"":                          2,
		"a reply to no command":     3,
	} {
		synctest.Test(t, func(t *testing.T) {
			told, written, buf := 0, make(chan error, 1), make([]byte, 100)
			w := newWire(func(error) { told++ })
			w.Write([]byte(command + command))
			var err error
			begun := time.Now()
			for time.Since(begun) < 1500*time.Millisecond && err == nil {
				time.Sleep(10 * time.Millisecond)
				go func() {
					_, err := w.Write([]byte(command))
					written <- err
				}()
				synctest.Wait()
				n := 1
				if len(written) == 0 { // it waits for all replies
					n = owed
				}
				owed += 1 - n
				w.server.to = []byte(strings.Repeat(reply, n))
				_, err = w.Read(buf)
				err = errors.Join(err, <-written)
			}
			if want == "" {
				if err != nil || told > 0 {
					t.Errorf("no reply lost: %v, reported %d times", err, told)
				}
			} else if err == nil || !strings.Contains(err.Error(), want) || told != 1 || !w.server.closed {
				t.Errorf("after %v: %v, reported %d times, closed %v: want %q", time.Since(begun), err, told, w.server.closed, want)
			}
		})
	}
}

// TestStalledServer has a server stop for seconds, with one command to answer or without: commands are sent meanwhile, since
// nothing shows that a reply was lost.
func TestStalledServer(t *testing.T) {
	const command, reply = "*1\r\n$4\r\nTIME\r\n", "*0\r\n"
	for _, idle := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, buf := newWire(func(err error) { t.Error(err) }), make([]byte, 100)
			answer := func() {
				w.server.to = []byte(reply)
				must.Get(w.Read(buf))(t)
			}
			must.Get(w.Write([]byte(command + command)))(t)
			answer()
			answer()
			for range 5 {
				begun := time.Now()
				must.Get(w.Write([]byte(command)))(t)
				if waited := time.Since(begun); waited > 0 {
					t.Errorf("idle %v: a command waits for %v", idle, waited)
				}
				if idle {
					answer()
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// TestEndWhileACommandWaits ends a connection, by the server or by the client, before a command that must wait for replies,
// and while one waits: the wait ends, and this does not count as damage.
func TestEndWhileACommandWaits(t *testing.T) {
	const command, reply = "*1\r\n$4\r\nTIME\r\n", "*0\r\n"
	for _, byServer := range []bool{true, false} {
		for _, waits := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(func(err error) { t.Errorf("by the server %v, waits %v: %v", byServer, waits, err) })
				buf := make([]byte, len(reply))
				w.Write([]byte(command + command))
				w.server.to = []byte(reply)
				must.Get(w.Read(buf))(t)
				time.Sleep(time.Second)
				start := time.Now()
				done := make(chan struct{})
				write := func() {
					w.Write([]byte(command))
					close(done)
				}
				if waits {
					go write()
					synctest.Wait()
				}
				if w.server.ended = true; byServer {
					w.Read(buf)
				} else {
					w.Close()
				}
				if !waits {
					go write()
				}
				if <-done; time.Since(start) > 0 {
					t.Errorf("by the server %v, waits %v: the command waited for %v", byServer, waits, time.Since(start))
				}
			})
		}
	}
}

// TestCheckedConnDoesNotAllocate sends a command and reads its reply.
func TestCheckedConnDoesNotAllocate(t *testing.T) {
	w, buf := newWire(nil), make([]byte, 1024)
	command, reply := []byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), []byte("$1\r\nb\r\n")
	exchange := func() {
		w.Write(command)
		w.server.to = reply
		if n, err := w.Read(buf); n != len(reply) || err != nil {
			t.Fatal(n, err)
		}
	}
	exchange()
	if n := testing.AllocsPerRun(1000, exchange); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCheckedConn(b *testing.B) {
	w, buf := newWire(nil), make([]byte, 1024)
	command, reply := []byte("*5\r\n$7\r\nEVALSHA\r\n$40\r\n"+strings.Repeat("a", 40)+"\r\n$1\r\n1\r\n$8\r\nlately:a\r\n$40\r\n"+strings.Repeat("a", 40)+"\r\n"), []byte("$60\r\n"+strings.Repeat("a", 60)+"\r\n")
	b.ReportAllocs()
	for b.Loop() {
		w.Write(command)
		w.server.to = reply
		must.Get(w.Read(buf))(b)
	}
}

// A modelClient is how rueidis 1.0.79 reads replies (pipe._backgroundRead): what it panics at is an error.
type modelClient struct {
	queue          []string // commands that are not answered
	skip           int
	skipUnsubReply bool
	version2       bool // a connection for subscriptions in version 2
}

func (c *modelClient) read(v resptest.Value) error {
	first := ""
	if len(v.Elems) > 0 {
		first = v.Elems[0].Text
	}
	pong := v.Kind == '-' && (strings.HasPrefix(v.Text, "LOADING") || strings.HasPrefix(v.Text, "BUSY") || strings.Contains(v.Text, "'ping'")) ||
		(v.Kind == '+' || v.Kind == '$') && v.Text == "PONG" || first == "pong"
	confirms := false
	if v.Kind == '>' || c.version2 && first != "" && first != "pong" {
		unsubscribed := strings.HasSuffix(first, "unsubscribe")
		confirms = len(v.Elems) > 1 && strings.HasSuffix(first, "subscribe")
		switch {
		case !confirms:
			return nil
		case c.skip > 0:
			c.skip--
			return nil
		case unsubscribed:
			return nil
		}
	}
	if len(c.queue) == 0 {
		if c.skipUnsubReply && pong {
			c.skipUnsubReply = false
			return nil
		}
		return fmt.Errorf("panic: a reply to no command")
	}
	name, args, _ := strings.Cut(c.queue[0], " ")
	subscribes, unsubscribes := name == "SUBSCRIBE", name == "UNSUBSCRIBE"
	switch {
	case confirms && !subscribes:
		return fmt.Errorf("panic: a confirmation instead of a reply")
	case confirms:
		c.skip = len(strings.Fields(args)) - 1
	case subscribes && v.Text == "QUEUED":
		return fmt.Errorf("panic: a subscription in a transaction")
	case unsubscribes && !pong:
		c.skipUnsubReply = true
	case c.skipUnsubReply:
		if !pong {
			return fmt.Errorf("panic: another reply than PONG")
		}
		c.skipUnsubReply = false
		return nil
	}
	c.queue = c.queue[1:]
	return nil
}

// FuzzCheckedConn has a connection carry commands and replies in any order: whatever passes, the client does not panic.
func FuzzCheckedConn(f *testing.F) {
	commands := []string{"GET a", "SUBSCRIBE a", "SUBSCRIBE a b c", "UNSUBSCRIBE a", "ROLE", "PING"}
	replies := []string{
		"+OK\r\n", "$4\r\nPONG\r\n", "+PONG\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "-NOPERM no\r\n", noPing, "-LOADING a\r\n", "+QUEUED\r\n", "$6\r\nQUEUED\r\n",
		confirmA, confirmB, leaveA, messageA, old(confirmA), old(leaveA), old(messageA), helloMap, helloArray, "*0\r\n", "*-1\r\n", ">0\r\n", ">1\r\n$9\r\nsubscribe\r\n",
		">2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n", "$-5\r\n", "*1\r\n*1\r\n:1\r\n", "%1\r\n+a\r\n:1\r\n", ">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n",
	}
	f.Add([]byte{0, 6, 6}, uint64(1), false)
	f.Add([]byte{1, 2, 15, 15, 16, 15, 3, 17, 8, 0, 6}, uint64(2), false)
	f.Add([]byte{1, 19, 21, 3, 20, 9, 21}, uint64(3), true)
	f.Fuzz(func(t *testing.T, script []byte, seed uint64, version2 bool) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w, client := newWire(nil), modelClient{version2: version2}
		if version2 { // as rueidis begins a connection for subscriptions
			w.send(1+rng.IntN(9), "HELLO 2")
			w.receive(9, helloArray)
			w.send(9, "SUBSCRIBE x")
			w.receive(9, old(confirmA))
		} else {
			w.send(9, "HELLO 3")
			w.receive(9, helloMap)
		}
		for _, op := range script {
			i := int(op) % (len(commands) + len(replies))
			if i < len(commands) {
				w.send(1+rng.IntN(9), commands[i])
				if client.queue = append(client.queue, commands[i]); commands[i] == "UNSUBSCRIBE a" {
					w.send(1+rng.IntN(9), "PING") // which the client does not queue
				}
				continue
			}
			reply := replies[i-len(commands)]
			got, err := w.receive(1+rng.IntN(40), reply)
			if err != nil {
				if !w.server.closed {
					t.Fatalf("%q: %v, but the connection is open", reply, err)
				}
				return
			}
			v, err := resptest.NewReader(strings.NewReader(got)).Next()
			if err == io.EOF || err != nil {
				t.Fatalf("%q passed as %q: %v", reply, got, err)
			}
			if err := client.read(v); err != nil {
				t.Fatalf("%q passed: %v; waiting %q", reply, err, client.queue)
			}
		}
	})
}
