package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// watcher connects to the stream of hot keys of a server.
func watcher(t testing.TB, addr, query string) *bufio.Reader {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /v1/hot/watch%s HTTP/1.1\r\nHost: localhost\r\n\r\n", query)
	return bufio.NewReader(conn)
}

func TestHotStream(t *testing.T) {
	s := newServer(t, nil)
	heat := func(path string) {
		for range 5 {
			post(s, "/v1/check", `{"event":{"path":"`+path+`"}}`)
		}
	}
	heat("/product/1")
	addr := serve(t, s)
	for _, query := range []string{"", "?rule=product"} {
		in := watcher(t, addr, query)
		version, path := uint64(0), "/product/new"+strings.TrimPrefix(query, "?")
		for i := range 2 {
			var u api.HotUpdate
			must.Do(t, json.Unmarshal([]byte(next(t, in, "hot")), &u))
			if u.Reset != (i == 0) || u.From != version || u.More || (u.Rule != "") != (query != "") || len(u.Hot) == 0 || u.Cold == nil || u.Changed == nil {
				t.Errorf("update %d of %q: %+v", i, query, u)
			}
			if i == 0 {
				heat(path)
			} else if v := u.Hot[0].Values()[0]; len(u.Hot) != 1 || v != path {
				t.Errorf("received %s; want %s", v, path)
			}
			version = u.Version
		}
	}
	if w := ask(s, request{method: "GET", path: "/v1/hot/watch?rule=nosuch"}); w.Code != 404 && w.Code != 400 {
		t.Errorf("an unknown rule: %d %s", w.Code, w.Body)
	}
	if w := ask(s, request{method: "GET", path: "/v1/hot?rule=nosuch"}); !strings.Contains(w.Body.String(), "NORULE") {
		t.Errorf("an unknown rule: %d %s", w.Code, w.Body)
	}
}
