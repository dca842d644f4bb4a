package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
)

// TestColumnsAcrossBlocks has a log of several blocks whose columns change at random places. Each block must be read with
// the columns named in an earlier block: the report is that of one core, and has the counts of a reader of the whole.
func TestColumnsAcrossBlocks(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	orders := []string{"date time c-ip cs-uri-stem", "c-ip date time cs-uri-stem", "cs-uri-stem c-ip time date x-extra"}
	var log bytes.Buffer
	order, wantEvents := "", int64(0)
	for i := range 40_000 {
		if i == 0 || rng.IntN(9_000) == 0 {
			order = orders[rng.IntN(len(orders))]
			fmt.Fprintf(&log, "#Software: test\n#Fields: %s\n", order)
		}
		line := strings.NewReplacer("date", "2018-04-17", "time", fmt.Sprintf("%02d:%02d:%02d", i/3600%24, i/60%60, i%60),
			"c-ip", fmt.Sprintf("192.0.2.%d", rng.IntN(200)), "cs-uri-stem", "/a", "x-extra", "-").Replace(order)
		log.WriteString(line + strings.Repeat(" ", rng.IntN(20)) + "\n")
		wantEvents++
	}
	path := filepath.Join(t.TempDir(), "w3c.log")
	must.Do(t, os.WriteFile(path, log.Bytes(), 0o600))
	var first *replay.Report
	for _, format := range []string{"auto", "w3c"} {
		for _, cores := range []int{1, 3} {
			report, err := replay.Run(t.Context(), replay.Config{Files: []string{path}, Format: format, Cores: cores})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if report.Events != wantEvents || report.Bad != 0 || report.Format != "w3c" {
				t.Fatalf("seed %d: %d events, %d bad lines, format %s; want %d events", seed, report.Events, report.Bad, report.Format, wantEvents)
			}
			report.ElapsedSeconds = 0
			if first == nil {
				first = report
			} else if !reflect.DeepEqual(report, first) {
				t.Errorf("seed %d: the report of %d cores differs", seed, cores)
			}
		}
	}
	f, _ := accesslog.ParseFormat("w3c")
	parser := must.Get(f.NewParser(accesslog.Options{}))(t)
	counts := make(map[string]int64)
	var ev match.Event
	for line := range bytes.Lines(log.Bytes()) {
		if line, _, _ = accesslog.CutLine(line); parser.Parse(line, &ev) {
			counts[string(ev.Get(match.Client))]++
		}
	}
	for _, busy := range first.Top {
		if counts[busy.Values()[0]] != busy.Count {
			t.Errorf("seed %d: %s has %d events, want %d", seed, busy.Key, busy.Count, counts[busy.Values()[0]])
		}
	}
}

// TestTrustedProxies counts by the clients that proxies name, and by the proxy if it names none. Addresses written by the
// client do not count.
func TestTrustedProxies(t *testing.T) {
	const log = `198.51.100.1 - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 5 "-" "a" "192.0.2.7"
198.51.100.1 - - [17/Apr/2018:06:25:07 +0000] "GET / HTTP/1.1" 200 5 "-" "a" "203.0.113.9, 192.0.2.7, 198.51.100.2"
198.51.100.1 - - [17/Apr/2018:06:25:08 +0000] "GET / HTTP/1.1" 200 5 "-" "a" "-"
203.0.113.5 - - [17/Apr/2018:06:25:09 +0000] "GET / HTTP/1.1" 200 5 "-" "a" "192.0.2.7"
host.example - - [17/Apr/2018:06:25:09 +0000] "GET / HTTP/1.1" 200 5 "-" "a" "192.0.2.7"
`
	run := func(format string, proxies ...string) (*replay.Report, error) {
		c := replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log), Format: format}
		for _, p := range proxies {
			c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(p))
		}
		return replay.Run(t.Context(), c)
	}
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.regex"), filepath.Join(dir, "two.regex") // each gives an event of each line
	for _, file := range []string{one, two} {
		must.Do(t, os.WriteFile(file, []byte(`match ^(?P<client>\S+) .*"(?P<x_forwarded_for>[^"]*)"$`), 0o600))
	}
	for format, events := range map[string]int64{"auto": 1, "regex:" + one + "," + two: 2, `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"`: 1} {
		report := must.Get(run(format, "198.51.100.0/24"))(t)
		got := make(map[string]int64)
		for _, busy := range report.Top {
			got[busy.Values()[0]] = busy.Count
		}
		want := map[string]int64{"192.0.2.7": 2 * events, "proxy:198.51.100.1": events, "203.0.113.5": events, "host.example": events}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: clients %v, want %v", format, got, want)
		}
	}
	for _, c := range []struct{ format, proxy, want string }{
		{"nginx:$remote_addr [$time_local]", "198.51.100.0/24", "--trusted-proxy: the format has no field x_forwarded_for: must be one that has it, such as an nginx: format with $http_x_forwarded_for"},
		{"auto", "0.0.0.0/0", "--trusted-proxy: 0.0.0.0/0: trusts every address that a client claims: must be the networks of the proxies"},
	} {
		if _, err := run(c.format, c.proxy); err == nil || err.Error() != c.want {
			t.Errorf("%s, %s: %v, want %s", c.format, c.proxy, err, c.want)
		}
	}
}
