//go:build linux

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/netnstest"
)

const floodRules = `version: 1
counters:
  requests: {key: client, spans: [1h]}
bans:
  - {name: flood, key: client, after: 50 hits in 1h, for: 2h}
`

// TestFloodIsDropped floods the log of a web server, until the kernel drops the packets of the client that floods, and of
// no other.
func TestFloodIsDropped(t *testing.T) {
	host, outside := netnstest.New(t), netnstest.New(t)
	const server, flooder, neighbour = "198.51.100.1", "198.51.100.2", "198.51.100.3"
	host.Link(outside, []string{server + "/24"}, []string{flooder + "/24", neighbour + "/24"})
	host.Use("nft")
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "access.log")
	appendTo(t, rules, floodRules)
	s := serve(t, "--follow", log+"=clf", "--rules", rules, "--nftables")
	until := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not so after a minute\n%s", what, s.log.String())
			}
		}
	}
	answered := func(from string) func() bool {
		return func() bool { return outside.Connect(from, server) == netnstest.Refused }
	}
	until("the flooder is answered", answered(flooder))

	now := time.Now()
	appendTo(t, log, requests(neighbour, now, 50)+requests(flooder, now, 50))
	c := s.dial()
	until("the lines are read", func() bool { return c.say("SUM", "requests", flooder) == "50" })
	until("the flooder is answered at the limit", answered(flooder))
	began := time.Now()
	appendTo(t, log, requests(flooder, began, 1))
	until("the flooder is in the kernel's set", func() bool {
		table, _ := host.Try("list table inet lately\n", "nft", "-f", "-")
		return strings.Contains(table, flooder+" timeout")
	})
	t.Logf("it took %v from the line that crossed the limit to the kernel's set", time.Since(began).Round(time.Millisecond))
	until("the flooder is dropped", func() bool { return outside.Connect(flooder, server) == netnstest.Dropped })
	until("the neighbour is answered", answered(neighbour))
}
