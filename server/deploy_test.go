//go:build unix

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started runs a server of c on ports of its own until the test ends, and returns the
// URL of its HTTP listener.
func started(t *testing.T, c Config) (s *Server, url string) {
	t.Helper()
	set(&c.RESP, "127.0.0.1:0")
	set(&c.HTTP, "127.0.0.1:0")
	s, err := New(c, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	_, addr := s.Addresses()
	return s, "http://" + addr
}

const deployRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 3 per 1m, ban: {after: 1 refusals in 1m, for: 1h}}
`

func deployed(t *testing.T) Config {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(deployRules), 0o600); err != nil {
		t.Fatal(err)
	}
	return Config{RulesFile: path}
}

// Dashboard and alerts ask for series that there are.
func TestSeriesOfDashboardAndAlerts(t *testing.T) {
	_, url := started(t, deployed(t))
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	series := regexp.MustCompile(`\blately_[a-z_]+`)
	there := series.FindAllString(string(text), -1)
	for _, file := range []string{"grafana/lately.json", "prometheus/alerts.yaml"} {
		data, err := os.ReadFile(filepath.Join("..", "deploy", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is no JSON", file)
		}
		asked := series.FindAllString(string(data), -1)
		if len(asked) < 5 {
			t.Errorf("%s names only %q", file, asked)
		}
		for _, name := range asked {
			if !slices.Contains(there, name) {
				t.Errorf("%s asks for %s, which there is not", file, name)
			}
		}
	}
}

// The files that packages install are taken by the server.
func TestPackagedFiles(t *testing.T) {
	var c Config
	data, err := os.ReadFile(filepath.Join("..", "deploy", "systemd", "lately.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ReadSettings(&c, "lately.yaml", data); err != nil {
		t.Error(err)
	}
	if c.RulesFile != "/etc/lately/rules.yaml" {
		t.Errorf("the rules are %s", c.RulesFile)
	}
	c.RulesFile = filepath.Join("..", "deploy", "systemd", "rules.yaml")
	c.RESP, c.HTTP = "", ""
	started(t, c)
}

// Bans and lifts reach nftables, those from before the start included, and nothing
// that is no address does.
func TestBansReachNftables(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "jq", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP nftables: there is no %s here", tool)
		}
	}
	s, url := started(t, deployed(t))
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	// In place of the real one, which wants rights and a kernel.
	fake := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s\n", log)
	if err := os.WriteFile(filepath.Join(dir, "nft"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	ban := func(key string) {
		t.Helper()
		if _, err := s.Engine().Ban("per-client", []string{key}, time.Hour, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	ban("192.0.2.1")
	ban("$(reboot); 192.0.2.66")
	script, err := filepath.Abs(filepath.Join("..", "deploy", "nftables", "lately-nft"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", script, url, "per-client")
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := os.Create(filepath.Join(dir, "said")) // a file: nobody has to copy
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the script and all that it has started
		_ = cmd.Wait()
	}()
	wait := func(want string) string {
		t.Helper()
		for range 500 {
			text, _ := os.ReadFile(log)
			if strings.Contains(string(text), want) {
				return string(text)
			}
			time.Sleep(10 * time.Millisecond)
		}
		text, _ := os.ReadFile(log)
		complaints, _ := os.ReadFile(said.Name())
		t.Fatalf("no %q in\n%s\n%s", want, text, complaints)
		return ""
	}
	wait("add element inet lately banned4 { 192.0.2.1 timeout 3")
	ban("2001:db8::1")
	ban("not an address")
	wait("add element inet lately banned6 { 2001:db8::/64 timeout 3")
	if ok, err := s.Engine().Lift("per-client", []string{"192.0.2.1"}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	all := wait("delete element inet lately banned4 { 192.0.2.1 }")
	if strings.Contains(all, "reboot") || strings.Contains(all, "not an") || strings.Contains(all, "66") {
		t.Errorf("what is no address has got through:\n%s", all)
	}
}
