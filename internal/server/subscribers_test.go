package server

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/test/must"
)

// The status counts the clients that subscribe, on both listeners. The server itself, which follows its
// bans to enforce them, is not counted.
func TestSubscribersAreClients(t *testing.T) {
	s, url := started(t, Config{Enforce: enforce.Targets{CrowdSec: true}})
	want := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d clients subscribe", n), func() bool {
			_, body := got(t, url+"/v1/status")
			var status api.Status
			must.Do(t, json.Unmarshal([]byte(body), &status))
			_, metrics := got(t, url+"/metrics")
			return status.Subscribers == n && strings.Contains(metrics, fmt.Sprintf("\nlately_subscribers %d\n", n))
		})
	}
	want(0)
	resp, http := s.Addresses()
	for i, c := range []struct{ addr, text string }{
		{resp, "SUBSCRIBE bans\r\n"}, {resp, "HOT.WATCH\r\n"}, {http, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	} {
		conn := must.Get(net.Dial("tcp", c.addr))(t)
		defer conn.Close()
		fmt.Fprint(conn, c.text)
		want(i + 1)
	}
}
