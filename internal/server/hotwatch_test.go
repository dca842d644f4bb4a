package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// A hotClient reads the state of hot keys by one protocol.
type hotClient struct {
	next func() ([]byte, error) // the next update
	keys map[string]bool        // that are hot
}

// read applies updates until the key last has arrived.
func (c *hotClient) read(last string) error {
	for {
		if c.keys[last] {
			return nil
		}
		text, err := c.next()
		if err != nil {
			return err
		}
		var u api.HotUpdate
		if err := json.Unmarshal(text, &u); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		if u.Reset {
			clear(c.keys)
		}
		for _, k := range u.Hot {
			c.keys[strings.Join(k.Values(), ",")] = true
		}
		for _, k := range u.Cold {
			delete(c.keys, strings.Join(k.Values(), ","))
		}
	}
}

// dialRESP connects to the RESP listener, sends a command that begins a watch, and returns
// a client of what follows it.
func dialRESP(t *testing.T, addr string, commands ...[]string) *hotClient {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	r := resptest.NewReader(conn)
	for _, c := range commands {
		conn.Write(resp.AppendCommand(nil, c...))
		if v, err := r.Next(); err != nil || v.Kind == '-' {
			t.Fatalf("%s: %v, %v", c, v, err)
		}
	}
	return &hotClient{keys: map[string]bool{}, next: func() ([]byte, error) {
		v, err := r.Next()
		if err != nil || len(v.Elems) < 2 {
			return nil, fmt.Errorf("%v, %w", v, err)
		}
		return []byte(v.Elems[len(v.Elems)-1].Text), nil
	}}
}

// dialSSE watches by server-sent events.
func dialSSE(t *testing.T, url string) *hotClient {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	t.Cleanup(func() { answer.Body.Close() })
	in := bufio.NewReader(answer.Body)
	return &hotClient{keys: map[string]bool{}, next: func() ([]byte, error) {
		for {
			line, err := in.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok || err != nil {
				return []byte(data), err
			}
		}
	}}
}

// All protocols report the same: watchers, from the start or later, receive the same keys, which are those of the lists.
func TestHotKeysByAllProtocols(t *testing.T) {
	c := deployed(t)
	const rule = "page"
	must.Do(t, os.WriteFile(c.RulesFiles[0], []byte("version: 1\nhot: [{name: page, key: path, threshold: 1000 per 1s, hold: 1h}]\n"), 0o600))
	s, url := started(t, c)
	addr, _ := s.Addresses()
	admin := must.Get(net.Dial("tcp", addr))(t)
	defer admin.Close()
	r := resptest.NewReader(admin)
	do := func(args ...string) resptest.Value {
		t.Helper()
		admin.Write(resp.AppendCommand(nil, args...))
		v, err := r.Next()
		if err != nil || v.Kind == '-' {
			t.Fatalf("%s: %v, %v", args, v, err)
		}
		return v
	}
	hot := func(path, key string) {
		t.Helper()
		body := must.Get(json.Marshal(api.RuleKey{Rule: rule, Key: api.KeyOf(key)}))(t)
		answer := must.Get(http.Post(url+path, "application/json", bytes.NewReader(body)))(t)
		answer.Body.Close()
		if answer.StatusCode >= 300 {
			t.Fatalf("%s %q: %s", path, key, answer.Status)
		}
	}
	watch := func() []*hotClient {
		return []*hotClient{
			dialRESP(t, addr, []string{"HOT.WATCH"}),
			dialRESP(t, addr, []string{"SUBSCRIBE", "hot.watch:" + rule}),
			dialRESP(t, addr, []string{"HELLO", "3"}, []string{"HOT.WATCH"}),
			dialRESP(t, addr, []string{"HELLO", "3"}, []string{"SUBSCRIBE", "hot.watch"}),
			dialSSE(t, url+"/v1/hot/watch"),
			dialSSE(t, url+"/v1/hot/watch?rule="+rule),
		}
	}
	all := watch()
	for i := range 300 {
		key := fmt.Sprintf("/k%d\xff", i%40)
		switch i % 4 {
		case 0, 1:
			hot("/v1/hot", key)
		case 2:
			do("HOT.CHANGED", rule, key)
		default:
			hot("/v1/hot/remove", fmt.Sprintf("/k%d\xff", (i*7)%40))
		}
		if i == 150 {
			all = append(all, watch()...)
		}
	}
	hot("/v1/hot", "/last")
	want := map[string]bool{}
	for _, k := range do("HOT.LIST", rule).Elems {
		want[k.Elems[1].Text] = true
	}
	for i, c := range all {
		if err := c.read("/last"); err != nil {
			t.Fatalf("watcher %d: %v", i, err)
		}
		if got := slices.Sorted(maps.Keys(c.keys)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("watcher %d has %q; want %q", i, got, slices.Sorted(maps.Keys(want)))
		}
	}
	answer := must.Get(http.Get(url + "/v1/hot?rule=" + rule))(t)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	var list api.HotList
	if err != nil || json.Unmarshal(b, &list) != nil || len(list.Hot) != len(want) {
		t.Errorf("GET /v1/hot has %d keys, %v; want %d", len(list.Hot), err, len(want))
	}
}
