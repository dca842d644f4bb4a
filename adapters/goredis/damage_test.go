package latelygoredis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lately-go/lately/latelyredis"
)

// TestDamagedReplies has a server answer with damaged replies. go-redis panics at some of them in the goroutine of the
// caller, allocates the announced length, and returns a second reply as the answer to the next command; over a CheckedConn
// there is an error instead.
func TestDamagedReplies(t *testing.T) {
	var reply string // to all but HELLO and CLIENT
	dial := func(wrap func(net.Conn) net.Conn) *redis.Client {
		var servers sync.WaitGroup
		t.Cleanup(servers.Wait)
		client := redis.NewClient(&redis.Options{
			Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				conn, server := net.Pipe()
				servers.Go(func() { answer(server, &reply) })
				return wrap(conn), nil
			},
		})
		t.Cleanup(func() { client.Close() })
		return client
	}
	ask := func(client *redis.Client) (got string) {
		defer func() {
			if r := recover(); r != nil {
				got = fmt.Sprint("panic: ", r)
			}
		}()
		value, err := client.Do(context.Background(), "GET", "a").Text()
		return fmt.Sprint(value, err)
	}
	for _, tt := range []struct{ reply, unchecked, checked string }{
		{"$9223372036854775807\r\n", "panic: ", "invalid bulk length"},
		{"*9223372036854775807\r\n", "panic: ", "too many values"},
		{"$-5\r\n", "", "not a reply"},
	} {
		reply = tt.reply
		if got := ask(dial(func(c net.Conn) net.Conn { return c })); !strings.Contains(got, tt.unchecked) {
			t.Errorf("%q without a check: %s, want %s", tt.reply, got, tt.unchecked)
		}
		if got := ask(dial(func(c net.Conn) net.Conn { return latelyredis.CheckedConn(c, nil) })); !strings.Contains(got, tt.checked) {
			t.Errorf("%q: %s, want an error with %s", tt.reply, got, tt.checked)
		}
	}
}

// answer sends *reply to each command of a connection except the first ones.
func answer(conn net.Conn, reply *string) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		var words int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &words); err != nil {
			return
		}
		command := ""
		for range words {
			var n int
			fmt.Fscanf(r, "$%d\r\n", &n)
			word := make([]byte, n+2)
			io.ReadFull(r, word)
			command += strings.ToUpper(string(word[:n])) + " "
		}
		switch {
		case strings.HasPrefix(command, "GET "):
			io.WriteString(conn, *reply)
		case strings.HasPrefix(command, "HELLO "):
			io.WriteString(conn, "-ERR unknown command\r\n")
		default:
			io.WriteString(conn, "+OK\r\n")
		}
	}
}
