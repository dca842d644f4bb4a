//go:build unix

package server

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// banClient bans a client by hand.
func banClient(t *testing.T, s *Server, key string, d time.Duration) {
	t.Helper()
	must.Get(s.engine.Bans().Ban("per-client", []string{key}, d, "", ""))(t)
}

// begin has the rule per-client begin a ban of whatever an event names as its client.
func begin(t *testing.T, s *Server, client string) {
	t.Helper()
	c := s.engine.Session()
	for range 5 {
		ev := c.Event()
		ev.SetNamedString("client", client)
		must.Get(c.Check(ev, 1, engine.Terms{}))(t)
	}
}

// withNFT returns settings of a server whose nft writes its scripts to a file, and a
// function that waits until the file has a text.
func withNFT(t *testing.T) (c Config, wait func(text string) (scripts string)) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "scripts")
	nft := fmt.Sprintf("#!/bin/sh\ncat >> %s\necho ' drop drop drop drop'\n", log)
	must.Do(t, os.WriteFile(filepath.Join(dir, "nft"), []byte(nft), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	c = deployed(t)
	c.Enforce.NFTables, c.RulesPoll = true, -1
	return c, func(text string) string {
		t.Helper()
		var scripts []byte
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if scripts, _ = os.ReadFile(log); bytes.Contains(scripts, []byte(text)) {
				return string(scripts)
			}
		}
		t.Fatalf("no %q in\n%s", text, scripts)
		return ""
	}
}

// Bans reach nftables, whether from the last run, by rules or by hand, and so do their
// ends.
func TestBansReachNFTables(t *testing.T) {
	c, wait := withNFT(t)
	c.Data = t.TempDir()
	t.Run("before", func(t *testing.T) {
		c := c
		c.Enforce.NFTables = false
		s, _ := started(t, c)
		banClient(t, s, "192.0.2.1", time.Hour)
	})
	s, url := started(t, c)
	scripts := wait("{ 192.0.2.1 timeout 3")
	if !strings.HasPrefix(scripts, "add table inet lately\ndelete table inet lately\nadd table inet lately\nadd chain inet lately banned { type filter hook prerouting priority raw; policy accept; }\n"+
		"add rule inet lately banned iif lo accept\nadd set inet lately ipv4_32 ") {
		t.Errorf("the first script is\n%s", scripts)
	}
	begin(t, s, "198.51.100.1")
	for _, hostile := range []string{"0.0.0.0/0", "127.0.0.1", "192.0.2.67\n", "10.0.0.1 }; flush ruleset; add element inet lately ipv4_32 { 10.0.0.2", "::1"} {
		begin(t, s, hostile)
	}
	banClient(t, s, "2001:db8::1", time.Hour)
	wait("198.51.100.1 timeout 3")
	wait("2001:db8:: timeout 3")
	if n, err := s.engine.Bans().Unban("per-client", []string{"192.0.2.1"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	scripts = wait("delete element inet lately ipv4_32 { 192.0.2.1 }")
	for _, hostile := range []string{"0.0.0.0", "127.0.0.1", "192.0.2.67", "10.0.0", "::1 ", "flush"} {
		if strings.Contains(scripts, hostile) {
			t.Errorf("%q is in the scripts:\n%s", hostile, scripts)
		}
	}
	_, values := scrape(t, url, "")
	for series, want := range map[string]float64{
		"lately_enforced_networks":                              2,
		`lately_enforcement_skipped_bans{reason="not_address"}`: 3, `lately_enforcement_skipped_bans{reason="reserved"}`: 2, `lately_enforcement_skipped_bans{reason="too_wide"}`: 0,
		`lately_enforcement_failing{target="nftables"}`: 0, `lately_enforcement_failures_total{target="nftables"}`: 0,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", series, got, ok, want)
		}
	}
}

// A reload that puts banned clients on the allow list ends their bans at once, and trusted
// proxies are never dropped.
func TestReloadEndsEnforcement(t *testing.T) {
	c, wait := withNFT(t)
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	s, _ := started(t, c)
	begin(t, s, "203.0.113.9")
	begin(t, s, "192.0.2.1")
	if scripts := wait("{ 192.0.2.1 timeout 3"); strings.Contains(scripts, "203.0.113.9") {
		t.Errorf("a trusted proxy is dropped:\n%s", scripts)
	}
	must.Do(t, os.WriteFile(c.RulesFiles[0], []byte(deployRules+"allow: [192.0.2.1]\n"), 0o600))
	must.Do(t, s.Reload())
	eventually(t, "both are protected", func() bool { // a ban that begins is deleted first, too
		got := s.enforce.Status()
		return got.Networks == 0 && got.Skipped["protected"] == 2 && got.Targets[0].Lag == 0
	})
	if scripts := wait("delete element inet lately ipv4_32 { 192.0.2.1 }\n"); strings.Contains(scripts[strings.LastIndex(scripts, "delete element"):], "192.0.2.1 timeout") {
		t.Errorf("the last script bans again:\n%s", scripts)
	}
}

func TestEnforcementConfig(t *testing.T) {
}
