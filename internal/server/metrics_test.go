package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// scrape returns the answer of /metrics: the text, and the value of each series.
func scrape(t *testing.T, url, token string) (text string, values map[string]float64) {
	t.Helper()
	r := must.Get(http.NewRequest("GET", url+"/metrics", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	values = make(map[string]float64)
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = v
		}
	}
	return string(b), values
}

// withTokens returns the settings of a server with tokens, and the token of its admin.
func withTokens(t *testing.T) (c Config, token string) {
	t.Helper()
	c = deployed(t)
	c.TokenFile = c.RulesFiles[0] + ".tokens"
	must.Get(access.Generate(c.TokenFile))(t)
	b := must.Get(os.ReadFile(c.TokenFile))(t)
	_, admin, _ := strings.Cut(string(b), "\nadmin ")
	return c, strings.Fields(admin)[0]
}

// TestMetricsOfListeners sends known requests to both listeners, and finds each in the series of its listener.
func TestMetricsOfListeners(t *testing.T) {
	c, token := withTokens(t)
	s, url := started(t, c)
	resp, _ := s.Addresses()
	conn := must.Get(net.Dial("tcp", resp))(t)
	defer conn.Close()
	commands := "CHECK client 192.0.2.1\r\n" + // without a token
		"AUTH " + strings.Repeat("x", 43) + "\r\nAUTH " + token + "\r\nPING\r\n" +
		strings.Repeat("TAKE per-client 192.0.2.1\r\n", 3) + "CHECK client 192.0.2.2\r\nCL.THROTTLE k 1 1 60\r\n" +
		"TAKE no-such-rule 192.0.2.1\r\nPEEK per-client 192.0.2.1\r\nQUIT\r\n"
	must.Get(io.WriteString(conn, commands))(t)
	must.Get(io.Copy(io.Discard, bufio.NewReader(conn)))(t)
	ask := func(path, token, body string, want int) {
		t.Helper()
		r := must.Get(http.NewRequest("POST", url+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(http.DefaultClient.Do(r))(t)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s %s answers %s; want %d", path, body, answer.Status, want)
		}
	}
	event := `{"event":{"client":"192.0.2.3"}}`
	ask("/v1/check", token, event, 200)
	ask("/v1/check", token, `{"events":[`+event+","+event+`]}`, 200)
	ask("/v1/check", strings.Repeat("x", 43), event, 401)
	ask("/v1/take", token, `{"rule":"no-such-rule","key":["a"]}`, 404)
	_, got := scrape(t, url, token)
	for name, want := range map[string]float64{
		`lately_requests_total{listener="resp"}`:                             12,
		`lately_requests_total{listener="http"}`:                             5, // and the scrape itself
		`lately_request_errors_total{listener="resp"}`:                       3,
		`lately_request_errors_total{listener="http"}`:                       2,
		`lately_requests_unauthorized_total{listener="resp"}`:                2,
		`lately_requests_unauthorized_total{listener="http"}`:                1,
		`lately_requests_overloaded_total{listener="resp"}`:                  0,
		`lately_requests_overloaded_total{listener="http"}`:                  0,
		`lately_logins_rejected_total`:                                       2,
		`lately_connections_total{listener="resp"}`:                          1,
		`lately_decision_duration_seconds_count{listener="resp"}`:            5,
		`lately_decision_duration_seconds_count{listener="http"}`:            3,
		`lately_decision_duration_seconds_bucket{listener="resp",le="+Inf"}`: 5,
		`lately_decision_errors_total`:                                       2,
		`lately_http_requests_total{code="200"}`:                             3, // and the scrape itself
		`lately_http_requests_total{code="401"}`:                             1,
		`lately_http_requests_total{code="404"}`:                             1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v); want %v", name, v, ok, want)
		}
	}
	for _, listener := range []string{"resp", "http"} {
		if v := got[`lately_decision_duration_seconds_sum{listener="`+listener+`"}`]; v <= 0 || v > 60 {
			t.Errorf("decisions over %s took %v s in all", listener, v)
		}
	}
}

// TestMetricsOfOverload has more connections than are allowed.
func TestMetricsOfOverload(t *testing.T) {
	c := deployed(t)
	c.MaxConnections, c.PeerConnections = 4, 2
	s, url := started(t, c)
	resp, _ := s.Addresses()
	for i := range 3 {
		conn := must.Get(net.Dial("tcp", resp))(t)
		defer conn.Close()
		fmt.Fprint(conn, "PING\r\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || strings.HasPrefix(line, "-OVERLOAD") != (i == 2) {
			t.Errorf("connection %d is answered %q, %v", i, line, err)
		}
	}
	if _, got := scrape(t, url, ""); got[`lately_connections_refused_total{listener="resp"}`] != 1 || got[`lately_connections{listener="resp"}`] != 2 {
		t.Errorf("%v refused, %v open", got[`lately_connections_refused_total{listener="resp"}`], got[`lately_connections{listener="resp"}`])
	}
}

// TestMetricsAreLinted has Prometheus' own tool look at the names, types and texts.
func TestMetricsAreLinted(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIP promtool check metrics:", err)
	}
	c := deployed(t)
	c.Data = t.TempDir()
	_, url := started(t, c)
	text, _ := scrape(t, url, "")
	lint := func(text string) (string, error) {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := lint(text); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := lint(text + "# TYPE lately_counter_keys gauge\nlately_counter_keys 1\n"); err == nil {
		t.Errorf("a wrong name passes, with %q: this test cannot fail", out)
	}
}
