package resp_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/lately-go/lately/internal/resp"
)

func ExampleReader() {
	stream := "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING\r\n*1\r\n$x"
	r, err := resp.NewReader(strings.NewReader(stream), resp.Limits{Args: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		args, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q", args) // before Ready, which may parse the next one
		fmt.Printf(", another one waits: %t\n", r.Ready())
	}
	// Output:
	// ["ECHO" "hello"], another one waits: true
	// ["PING"], another one waits: true
	// Protocol error: invalid bulk length
}

func ExampleWriter() {
	w := resp.NewWriter(os.Stdout)
	for _, version := range []int{2, 3} {
		if err := w.SetVersion(version); err != nil {
			fmt.Println(err)
			return
		}
		w.Map(1)
		w.BulkString("rate")
		w.Double(12.5)
		fmt.Printf("%q\n", w.Bytes())
		w.Discard() // a server calls Flush
	}
	// Output:
	// "*2\r\n$4\r\nrate\r\n$4\r\n12.5\r\n"
	// "%1\r\n$4\r\nrate\r\n,12.5\r\n"
}

// A client sends two commands in one write and reads the two replies.
func ExampleReplyReader() {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		_, _ = io.ReadFull(server, make([]byte, 88))
		w := resp.NewWriter(server)
		w.Decision(&resp.Decision{Allowed: true, Limit: 60, Remaining: 59, ResetAfter: 60_000, Rule: "per-client"})
		w.Error("NORULE", "there is no rule logn: did you mean login?")
		_ = w.Flush()
	}()

	commands := resp.AppendCommand(nil, "TAKE", "per-client", "203.0.113.7")
	commands = resp.AppendCommand(commands, "TAKE", "logn", "203.0.113.7")
	if _, err := client.Write(commands[:88]); err != nil {
		fmt.Println(err)
		return
	}
	r, err := resp.NewReplyReader(client, resp.ReplyLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		v, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := v.Err(); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("allowed:", v.Elems[0].Int == 1, "remaining:", v.Elems[2].Int)
	}
	// Output:
	// allowed: true remaining: 59
	// NORULE there is no rule logn: did you mean login?
}
