package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestStoreDamage starts a server with a store that answers every command with a length at which the client library
// panics: the server goes on, decides, and counts the replies.
func TestStoreDamage(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var conns sync.WaitGroup
	t.Cleanup(conns.Wait)
	t.Cleanup(func() { listener.Close() })
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "*") {
						io.WriteString(conn, "$-5\r\n")
					}
				}
			})
		}
	})
	for _, store := range []string{"redis://" + listener.Addr().String(), "redis://" + listener.Addr().String() + "?master_set=primary"} {
		c := deployed(t)
		c.Store = store
		_, url := started(t, c)
		eventually(t, "damaged replies are counted", func() bool {
			_, text := got(t, url+"/metrics")
			return strings.Contains(text, "\nlately_store_damaged_replies_total ") && !strings.Contains(text, "\nlately_store_damaged_replies_total 0\n")
		})
		if code, text := got(t, url+"/healthz"); code != http.StatusOK {
			t.Errorf("%d %s", code, text)
		}
	}
}
