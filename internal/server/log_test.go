//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// Log lines have attributes that are texts, numbers and booleans.
func TestLog(t *testing.T) {
	var log safeBuffer
	c := deployed(t)
	c.Data = t.TempDir()
	c.MaxConnections, c.PeerConnections = 10, 1
	s, url := startedWith(t, c, slog.New(slog.NewJSONHandler(&log, nil)))
	const many = 200
	for i := range many {
		begin(t, s, fmt.Sprint("192.0.2.", i))
	}
	banClient(t, s, "198.51.100.1", time.Hour)
	for _, call := range [][2]string{
		{"/v1/bans", `{"rule":"per-client","key":"198.51.100.7","for":"1h","reason":"spam"}`},
		{"/v1/bans/unban", `{"rule":"per-client","key":"198.51.100.7"}`},
		{"/v1/bans/unban", `{"rule":"per-client"}`},
	} {
		if code, text := posted(t, url+call[0], call[1]); code/100 != 2 {
			t.Fatal(code, text)
		}
	}
	resp, _ := s.Addresses()
	for range 2 {
		conn := must.Get(net.Dial("tcp", resp))(t)
		defer conn.Close()
	}
	lines := func(want string) (found []map[string]any) {
		for line := range strings.Lines(log.String()) {
			var attrs map[string]any
			if err := json.Unmarshal([]byte(line), &attrs); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if attrs["msg"] == want {
				found = append(found, attrs)
			}
		}
		return found
	}
	counted := func(want string) (n int) {
		for _, l := range lines(want) {
			if more, ok := l["suppressed"].(float64); ok {
				n += int(more)
			} else {
				n++
			}
		}
		return n
	}
	eventually(t, "each ban is logged or counted", func() bool { return counted("ban started") == many && counted("ban ended") == many+1 })
	if n := len(lines("ban started")); n > many/2 {
		t.Errorf("%d lines about %d bans", n, many)
	}
	eventually(t, "the overload", func() bool { return counted("overload: a connection is refused") == 1 })
	for message, attrs := range map[string][]string{
		"serving":                           {"version", "resp", "http", "tls", "tokens", "rules", "limits_and_bans", "data"},
		"state restored":                    {"dir", "snapshot", "keys", "bans", "took"},
		"ban started":                       {"rule", "key", "until", "count", "reason"},
		"ban added by hand":                 {"rule", "key", "until", "reason", "by", "role", "peer"},
		"ban ended by hand":                 {"rule", "key", "by", "role", "peer"},
		"bans ended by hand":                {"rule", "bans", "by", "role", "peer"},
		"ban ended":                         {"rule", "key"},
		"overload: a connection is refused": {"listener", "peer", "max_connections"},
	} {
		found := lines(message)
		if len(found) == 0 {
			t.Errorf("no line %q", message)
			continue
		}
		for _, name := range attrs {
			if _, ok := found[0][name]; !ok {
				t.Errorf("%q has no %s: %v", message, name, found[0])
			}
		}
	}
	for line := range strings.Lines(log.String()) {
		var attrs map[string]any
		_ = json.Unmarshal([]byte(line), &attrs)
		for name, value := range attrs {
			switch value.(type) {
			case string, float64, bool:
			default:
				t.Errorf("%s is %v in %s", name, value, line)
			}
		}
		if strings.Contains(line, "{Keys") {
			t.Errorf("a structure in %s", line)
		}
	}
}
