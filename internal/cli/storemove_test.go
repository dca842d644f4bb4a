package cli

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// TestMoveToStore moves a server with a data directory to a store, as in docs/redis.md: limits begin at zero once, with a
// line in the log, counters stay, and the bans that were listed before are added to the store. A network is banned in
// memory only.
func TestMoveToStore(t *testing.T) {
	t.Parallel()
	rules := writeRules(t, "version: 1\ncounters:\n  requests: {key: client, spans: [1h]}\nlimits:\n  - {name: per-client, key: client, limit: 3 per 1h}\n")
	data := filepath.Join(t.TempDir(), "data")
	lately := func(s *serving, want int, stdin string, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), append(args, "--addr", s.http), strings.NewReader(stdin), &out, &out); code != want {
			t.Fatalf("lately %q: exit code %d, want %d: %s", args, code, want, out.String())
		}
		return out.String()
	}
	before := serve(t, "--rules", rules, "--data", data)
	c := before.dial()
	c.say("TAKE", "per-client", "192.0.2.1", "COST", "3")
	c.say("ADD", "requests", "192.0.2.1", "7")
	lately(before, exitOK, "", "ban", "--rule", "per-client", "--for", "1h", "--reason", "seen", "192.0.2.2")
	lately(before, exitOK, "", "ban", "--rule", "per-client", "--for", "1h", "198.51.100.0/24")
	exported := lately(before, exitOK, "", "bans", "--limit", "0", "--json")
	must.Do(t, before.end())
	redis := redistest.Own(t)
	shared := []string{"--rules", rules, "--data", data, "--store", "unix://" + redis.Socket() + "?dial_timeout=1m&write_timeout=1m", "--store-timeout", "10s"}
	const leftOut = "limits and bans of the data directory are left out"
	for round, want := range []int{1, 0} {
		s := serve(t, shared...)
		if !eventually(func() bool {
			r, err := http.Get(s.http + "/readyz")
			if err == nil {
				r.Body.Close()
			}
			return err == nil && r.StatusCode == http.StatusOK
		}) {
			t.Fatalf("the server is not ready\n%s", s.log)
		}
		if n := strings.Count(s.log.String(), leftOut); n != want {
			t.Errorf("start %d with a store: %d lines that limits are left out, want %d", round, n, want)
		}
		c := s.dial()
		if round == 0 {
			for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
				if got := c.say("PEEK", "per-client", client); !strings.HasPrefix(got, "[1 3 2 ") {
					t.Errorf("%s before the bans are added: %s, want no event and no ban", client, got)
				}
			}
			if got := lately(s, exitInput, exported, "ban", "--from", "-"); !strings.Contains(got, "bans added: 1, ended: 0, rejected: 1") || !strings.Contains(got, "198.51.100.0/24 under per-client") {
				t.Errorf("lately ban --from prints %q", got)
			}
			c.say("TAKE", "per-client", "192.0.2.1", "COST", "2")
		}
		if got := c.say("PEEK", "per-client", "192.0.2.2"); !strings.HasPrefix(got, "[0 ") {
			t.Errorf("the banned client in round %d: %s", round, got)
		}
		if got := c.say("PEEK", "per-client", "192.0.2.1"); !strings.HasPrefix(got, "[1 3 0 ") {
			t.Errorf("what the store has counted in round %d: %s", round, got)
		}
		if got := c.say("SUM", "requests", "192.0.2.1"); got != "7" {
			t.Errorf("the counter in round %d: %s", round, got)
		}
		if got := lately(s, exitOK, "", "bans"); !strings.Contains(got, "192.0.2.2") || !strings.Contains(got, "seen") || strings.Contains(got, "198.51.100.0") {
			t.Errorf("the bans in round %d: %s", round, got)
		}
		must.Do(t, s.end())
	}
}
