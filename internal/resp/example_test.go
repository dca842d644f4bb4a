package resp_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/lately-go/lately/internal/resp"
)

func ExampleReader() {
	stream := "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING\r\n*1\r\n$x"
	r := resp.NewReader(strings.NewReader(stream), resp.Limits{Args: 16})
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
	var out bytes.Buffer
	w := resp.NewWriter(&out)
	for _, version := range []int{2, 3} {
		w.SetVersion(version)
		w.Map(1)
		w.BulkString("rate")
		w.Double(12.5)
		if err := w.Flush(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q\n", out.Bytes())
		out.Reset()
	}
	// Output:
	// "*2\r\n$4\r\nrate\r\n$4\r\n12.5\r\n"
	// "%1\r\n$4\r\nrate\r\n,12.5\r\n"
}
