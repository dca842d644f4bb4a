//go:build unix

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// started runs a server of c on ports of its own until the test ends, and returns the
// URL of its HTTP listener.
func started(t *testing.T, c Config) (s *Server, url string) {
	t.Helper()
	return startedWith(t, c, nil)
}

// startedWith is started with a log.
func startedWith(t *testing.T, c Config, log *slog.Logger) (s *Server, url string) {
	t.Helper()
	c.RESP = cmp.Or(c.RESP, "127.0.0.1:0")
	c.HTTP = cmp.Or(c.HTTP, "127.0.0.1:0")
	s = must.Get(New(c, "test", log))(t)
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
	must.Do(t, os.WriteFile(path, []byte(deployRules), 0o600))
	return Config{RulesFiles: []string{path}}
}

// Dashboard and alerts use series that exist.
func TestSeriesOfDashboardAndAlerts(t *testing.T) {
	c := deployed(t)
	c.Data = t.TempDir()
	_, url := started(t, c)
	answer := must.Get(http.Get(url + "/metrics"))(t)
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	series := regexp.MustCompile(`\blately_[a-z_]+`)
	there := append(series.FindAllString(string(text), -1), conditionalSeries(t)...)
	for _, file := range []string{"grafana/lately.json", "prometheus/alerts.yaml"} {
		data := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(file))))(t)
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is not JSON", file)
		}
		asked := series.FindAllString(string(data), -1)
		if len(asked) < 5 {
			t.Errorf("%s names only %q", file, asked)
		}
		for _, name := range asked {
			if !slices.Contains(there, name) {
				t.Errorf("%s asks for %s, which does not exist", file, name)
			}
		}
	}
}

// conditionalSeries returns the series that only a server with a store, a log to follow or a
// target of enforcement has, as the source of the metrics names them.
func conditionalSeries(t *testing.T) (names []string) {
	t.Helper()
	source := must.Get(os.ReadFile(filepath.Join("httpapi", "metrics.go")))(t)
	for _, m := range regexp.MustCompile(`"((?:store|log|enforcement)_[a-z_]+)", "`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, "lately_"+m[1])
	}
	if len(names) < 15 {
		t.Fatalf("the source names only %q", names)
	}
	return names
}

// TestAlerts has Prometheus' own tool run the examples of alerts_test.yaml, which have
// each alert silent once and firing once.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIP promtool test rules:", err)
	}
	source, dir := filepath.Join("..", "..", "deploy", "prometheus"), t.TempDir()
	test := func(file string, change func(string) string) error {
		t.Helper()
		for _, name := range []string{"alerts.yaml", "alerts_test.yaml"} {
			text := must.Get(os.ReadFile(filepath.Join(source, name)))(t)
			if name == file {
				text = []byte(change(string(text)))
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		if out, err := exec.Command(promtool, "test", "rules", filepath.Join(dir, "alerts_test.yaml")).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := test("", nil); err != nil {
		t.Error(err)
	}
	text := must.Get(os.ReadFile(filepath.Join(source, "alerts.yaml")))(t)
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(text), -1)
	if len(alerts) < 10 {
		t.Errorf("the alerts are %q", alerts)
	}
	// An alert that fires in no example, or always, is found.
	last := alerts[len(alerts)-1][1]
	for _, broken := range []string{"vector(0) > 0", "vector(1) > 0"} {
		if err := test("alerts.yaml", func(text string) string {
			return regexp.MustCompile(`(alert: `+last+`\n\s+expr: ).*`).ReplaceAllString(text, "${1}"+broken)
		}); err == nil {
			t.Errorf("the examples pass with %s as %s: this test cannot fail", broken, last)
		}
	}
}

// TestDashboardQueries has Prometheus' own tool read each query of the dashboard.
func TestDashboardQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIP promtool check rules:", err)
	}
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "lately.json")))(t)
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	must.Do(t, json.Unmarshal(text, &dashboard))
	places, titles := map[[2]int]string{}, map[int]string{}
	check := func(expr string) error {
		expr = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$rule", ".*").Replace(expr)
		path := filepath.Join(t.TempDir(), "rules.yaml")
		must.Do(t, os.WriteFile(path, fmt.Appendf(nil, "groups: [{name: a, rules: [{record: a, expr: %q}]}]\n", expr), 0o600))
		if out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", expr, err, out)
		}
		return nil
	}
	for _, p := range dashboard.Panels {
		if other := titles[p.ID]; other != "" || len(p.Targets) == 0 {
			t.Errorf("the panel %s has the id of %q, and %d queries", p.Title, other, len(p.Targets))
		}
		titles[p.ID] = p.Title
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" && other != p.Title {
					t.Fatalf("the panels %s and %s overlap", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if err := check(target.Expr); err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
	if check("sum(rate(lately_decisions_total[$__rate_interval]") == nil {
		t.Error("a query with a mistake passes: this test cannot fail")
	}
}

// The files that packages install are taken by the server.
func TestPackagedFiles(t *testing.T) {
	var c Config
	data := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", "lately.yaml")))(t)
	if err := ReadSettings(&c, "lately.yaml", data); err != nil {
		t.Error(err)
	}
	if c.RulesFiles[0] != "/etc/lately/rules.yaml" {
		t.Errorf("the rules are %s", c.RulesFiles[0])
	}
	c.RulesFiles = []string{filepath.Join("..", "..", "deploy", "systemd", "rules.yaml")}
	c.RESP, c.HTTP = "", ""
	started(t, c)
}

// An upgrade by package leaves a server running, and no install starts one.
func TestPackageScripts(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	fake := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s\n", log)
	must.Do(t, os.WriteFile(filepath.Join(dir, "systemctl"), []byte(fake), 0o700))
	// As dpkg and rpm call them.
	for _, c := range []struct{ script, args, want string }{
		{"preremove.sh", "remove", "stop lately.service\n"},
		{"preremove.sh", "0", "stop lately.service\n"},
		{"preremove.sh", "upgrade 1.2.4", ""},
		{"preremove.sh", "1", ""},
		{"postinstall.sh", "configure 1.2.3", "daemon-reload\ntry-restart lately.service\n"},
		{"postinstall.sh", "2", "daemon-reload\ntry-restart lately.service\n"},
	} {
		script := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", c.script)))(t)
		text := strings.ReplaceAll(string(script), "/run/systemd/system", dir) // which is not everywhere
		cmd := exec.Command("sh", append([]string{"-c", text, c.script}, strings.Fields(c.args)...)...)
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %s: %v\n%s", c.script, c.args, err, out)
		}
		said, _ := os.ReadFile(log)
		if string(said) != c.want {
			t.Errorf("%s %s called systemctl with %q; want %q", c.script, c.args, said, c.want)
		}
		os.Remove(log)
	}
}
