//go:build unix

package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/server/enforce"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
)

// likeNetworks are names that an event may give its client, and that are not addresses.
var likeNetworks = []string{"203.0.0.0/16", "203.0.113.0/24", "203.0.113.5/32", "::ffff:203.0.113.0/120", "2a00:203::/32", "2A00:203:1::/64", "203.0.113.5/", "203.0.113.5,203.0.113.6"}

// A sink receives a webhook.
type sink struct{ safeBuffer }

func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(&s.safeBuffer, r.Body)
}

// enforcing returns settings of a server with every target, and what each target has refused.
func enforcing(t *testing.T) (c Config, targets func(url string) map[string]string) {
	t.Helper()
	c, wait := withNFT(t)
	dir := t.TempDir()
	var hook sink
	receiver := httptest.NewServer(&hook)
	t.Cleanup(receiver.Close)
	secret := filepath.Join(dir, "secret")
	must.Do(t, os.WriteFile(secret, []byte("a secret of tests, and of no server"), 0o600))
	c.Enforce.DenyFile.Path = filepath.Join(dir, "deny")
	c.Enforce.CrowdSec = true
	c.Enforce.Webhook = enforce.Webhook{URL: receiver.URL, SecretFile: secret}
	return c, func(url string) map[string]string {
		deny, _ := os.ReadFile(c.Enforce.DenyFile.Path)
		_, list := got(t, url+"/v1/decisions")
		_, stream := got(t, url+"/v1/decisions/stream?startup=true")
		return map[string]string{"nftables": wait("add table"), "deny file": string(deny), "webhook": hook.String(), "crowdsec": list, "crowdsec stream": stream}
	}
}

// A client whose name in an event looks like a network is refused by the server under that name only; enforcement does not
// get it, and the server does not refuse the network. That holds for each listener, for a log and after a restart. Networks
// that are banned by hand are refused everywhere.
func TestClientNamedLikeANetwork(t *testing.T) {
	c, targets := enforcing(t)
	c.Data = t.TempDir()
	log := logWriter{t, filepath.Join(t.TempDir(), "access.log")}
	clf := must.Get(accesslog.ParseFormat("clf"))(t)
	c.Follow = []follow.Log{{Path: log.path, Format: clf}} // where no client is an address, no format is detected
	networks := []string{"198.18.0.0/16", "198.51.100.0/24", "2a00:198::/32"}
	check := func(s *Server, url string) {
		t.Helper()
		n := &node{Server: s, t: t, url: url}
		var has map[string]string
		eventually(t, "every target has the network that was banned last", func() bool {
			has = targets(url)
			for _, text := range has {
				if !strings.Contains(text, "2a00:198::") || !strings.Contains(text, "198.51.100.0") || !strings.Contains(text, "198.18.0.0") || !strings.Contains(text, "192.0.2.7") {
					return false
				}
			}
			return true
		})
		for target, text := range has {
			for _, nobody := range []string{"203.0.", "2a00:203", "2A00:203"} {
				if strings.Contains(text, nobody) {
					t.Errorf("%s has a network that nobody banned:\n%s", target, text)
				}
			}
		}
		for _, name := range likeNetworks {
			if n.take("per-client", name) {
				t.Errorf("%q is allowed", name)
			}
		}
		for _, client := range []string{"203.0.113.5", "203.0.113.9", "203.0.1.1", "2a00:203::1", "2a00:203:1::1"} {
			if code, text := posted(t, url+"/v1/peek", fmt.Sprintf(`{"event":{"client":%q}}`, client)); code != 200 || !strings.Contains(text, `"allowed":true`) {
				t.Errorf("%s: %d %s", client, code, text)
			}
		}
		for _, client := range []string{"198.18.7.7", "198.51.100.9:443", "2a00:198::1%eth0"} {
			if code, text := posted(t, url+"/v1/peek", fmt.Sprintf(`{"event":{"client":%q}}`, client)); code != 200 || !strings.Contains(text, `"allowed":false`) {
				t.Errorf("%s: %d %s", client, code, text)
			}
		}
		if s.enforce.Status().Networks != len(networks)+1 {
			t.Errorf("%d networks are enforced, want %d", s.enforce.Status().Networks, len(networks)+1)
		}
		bans := bansOf(t, s)
		for _, key := range slices.Concat(likeNetworks, networks) {
			if _, ok := bans[key]; !ok {
				t.Errorf("no ban of %q is listed: %v", key, bans)
			}
		}
	}
	t.Run("first", func(t *testing.T) {
		s, url := started(t, c)
		n := &node{Server: s, t: t, url: url}
		names := append(slices.Clone(likeNetworks), "192.0.2.7")
		for i, name := range names {
			for range 5 {
				switch i % 4 {
				case 0:
					n.resp("CHECK client " + name)
				case 1:
					posted(t, url+"/v1/check", fmt.Sprintf(`{"event":{"client":%q}}`, name))
				case 2:
					n.resp("TAKE per-client " + name)
				case 3:
					log.requests(name, time.Now(), 1)
				}
			}
		}
		eventually(t, "all names are banned", func() bool { return len(bansOf(t, s)) == len(names) })
		for i, network := range networks {
			if i%2 == 0 {
				if answer := n.resp("BAN per-client " + network + " 1h"); !strings.HasPrefix(answer, "+OK") {
					t.Errorf("BAN %s: %q", network, answer)
				}
			} else if code, text := posted(t, url+"/v1/bans", fmt.Sprintf(`{"rule":"per-client","key":%q,"for":"1h"}`, network)); code/100 != 2 {
				t.Errorf("a ban of %s: %d %s", network, code, text)
			}
		}
		check(s, url)
	})
	t.Run("restarted", func(t *testing.T) {
		s, url := started(t, c)
		check(s, url)
	})
}

// Servers that share a store do not refuse the network that a client is named like, and each enforces the bans of the other
// servers.
func TestClientNamedLikeANetworkInStore(t *testing.T) {
	redis := redistest.Own(t)
	c, targets := enforcing(t)
	rules := strings.Replace(deployRules, "per-client", "shared", 1)
	begins := newNode(t, storeOf(redis))
	enforces := newNode(t, storeOf(redis), func(n *Config) { n.Enforce = c.Enforce })
	for _, n := range []*node{begins, enforces} {
		n.wantReady(200) // else other rules cannot be put in force
		n.write(rules)
		must.Do(t, n.Reload())
		n.wantReady(200)
	}
	for _, name := range append(slices.Clone(likeNetworks), "192.0.2.7") {
		for range 5 {
			begins.resp("CHECK client " + name)
		}
		if begins.take("shared", name) {
			t.Errorf("%q is allowed", name)
		}
	}
	if answer := begins.resp("BAN shared 198.18.0.0/16 1h"); !strings.HasPrefix(answer, "-BADARG") || !strings.Contains(answer, "in a shared store") {
		t.Errorf("BAN of a network: %q", answer)
	}
	eventually(t, "the other server knows all bans", func() bool { return len(bansOf(t, enforces.Server)) == len(likeNetworks)+1 })
	eventually(t, "every target has the address", func() bool {
		for _, text := range targets(enforces.url) {
			if !strings.Contains(text, "192.0.2.7") {
				return false
			}
		}
		return enforces.enforce.Status().Skipped["not_address"] == len(likeNetworks)
	})
	for target, text := range targets(enforces.url) {
		for _, nobody := range []string{"203.0.", "2a00:203", "2A00:203"} {
			if strings.Contains(text, nobody) {
				t.Errorf("%s has a network that nobody banned:\n%s", target, text)
			}
		}
	}
	if !enforces.take("shared", "203.0.113.5") || enforces.take("shared", "203.0.113.0/24") {
		t.Error("the other server refuses the address, or allows the name")
	}
}
