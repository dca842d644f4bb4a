package cli

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// agreeRules have limits, bans and conditions on one key and on several.
const agreeRules = `version: 1
counters:
  requests: {key: client, spans: [1m]}
limits:
  - name: per-client
    key: client
    limit: 60 per 1m
    ban: {after: 20 refusals in 5m, for: 10m, factor: 2, max: 24h}
  - name: page
    key: [client, path]
    when: {method: GET}
    limit: [3 per 1s, 20 per 10m]
  - name: errors
    key: client
    when: {status: [4xx, 5xx]}
    limit: 100 per 5m
  - {name: who, key: [user | client, status], limit: 40 per 1m}
  - {name: often, key: status, limit: [9 per 30s, 90 per 5m]} # at its bounds all day: each second counts
bans:
  - {name: flood, key: client, after: 600 hits in 10m, for: 1h}
hot:
  - {name: product, key: path, threshold: 50 per 10s, hold: 60s}
`

// Replay and serve are one engine: the same rules file and the same events, read from
// a log in replay's order, give the same decisions, byte by byte.
func TestServeAgreesWithReplay(t *testing.T) {
	path := writeRules(t, agreeRules)
	logs := agreeLogs(t)
	if testing.Short() {
		logs = logs[:1]
	}
	for _, log := range logs {
		t.Run(filepath.Base(log), func(t *testing.T) {
			replayed := replayDecisions(t, path, "auto", log)
			compareDecisions(t, replayed, judgeLogged(newEngine(t, path), readLog(t, log, "auto", path)))
		})
	}
}

// TestServeAgreesOnHotKeys has clients above their limits: serve and replay count the
// requests that are allowed under hot rules, and no others.
func TestServeAgreesOnHotKeys(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	log := filepath.Join(t.TempDir(), "log.csv")
	var lines []byte
	at := time.Now().Add(-time.Hour).UnixMilli() // a key whose hold has ended is not listed
	for range 6000 {
		at += rnd.Int64N(40)
		client := rnd.IntN(1 + rnd.IntN(20))
		lines = fmt.Appendf(lines, "%d,c%d,/%d\n", at, client, 3*client+rnd.IntN(1+rnd.IntN(3)))
	}
	must.Do(t, os.WriteFile(log, lines, 0o600))
	const format = "csv:time=1@ms,client=2,path=3"
	hot := func(limits string) (replayed, served []string) {
		rules := writeRules(t, "version: 1\n"+limits+"hot: [{name: page, key: path, threshold: 15 per 10s, hold: 1000d}]\n")
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"replay", "--json", "--format", format, "--rules", rules, log}, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("replay: code %d: %s", code, errs.String())
		}
		var report struct {
			Rules []struct {
				FirstHot []struct {
					Key []string
					T   float64
				} `json:"first_hot"`
			}
		}
		must.Do(t, json.Unmarshal(out.Bytes(), &report))
		for _, k := range report.Rules[len(report.Rules)-1].FirstHot {
			replayed = append(replayed, fmt.Sprintf("%s %.3f", k.Key[0], k.T))
		}
		e := newEngine(t, rules)
		judgeLogged(e, readLog(t, log, format, rules))
		list := must.Get(e.Hot().List(""))(t)
		for _, k := range slices.Backward(list) {
			served = append(served, fmt.Sprintf("%s %.3f", k.Values()[0], float64(k.Since.UnixMilli())/1e3))
		}
		return replayed, served
	}
	replayed, served := hot("limits: [{name: l, key: client, limit: 30 per 10s, ban: {after: 60 refusals in 1m, for: 20s}}]\n")
	if len(replayed) == 0 || !slices.Equal(replayed, served) {
		t.Errorf("replay has these hot keys, with times:\n%v\nand serve these:\n%v", replayed, served)
	}
	if all, _ := hot(""); slices.Equal(all, replayed) {
		t.Error("the same keys are hot without limits: the test shows nothing")
	}
}

// replayDecisions replays a log and returns the digest of its decisions.
func replayDecisions(t *testing.T, rules, format, log string) (digest string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"replay", "--json", "--format", format, "--rules", rules, log}, strings.NewReader(""), &out, &errs); code > exitInput {
		t.Fatalf("replay: code %d: %s", code, errs.String())
	}
	var report struct{ All struct{ SHA256 string } }
	must.Do(t, json.Unmarshal(out.Bytes(), &report))
	return report.All.SHA256
}

func compareDecisions(t *testing.T, replayed string, served []byte) {
	t.Helper()
	if len(served) < 1000 || !bytes.Contains(served, []byte{'D'}) || !bytes.Contains(served, []byte{'A'}) {
		t.Fatalf("%d decisions, %d refusals: no test", len(served), bytes.Count(served, []byte{'D'}))
	}
	if sum := sha256.Sum256(served); hex.EncodeToString(sum[:]) != replayed {
		t.Errorf("digest of %d served decisions: %x, of the replayed ones: %s", len(served), sum, replayed)
	}
}

// TestServeAgreesInMilliseconds has random clients near their limit, in a log of
// milliseconds, under each algorithm: serve and replay decide every event alike at
// the full precision of the log. Some N are counted by times and some by slots.
func TestServeAgreesInMilliseconds(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	log := filepath.Join(t.TempDir(), "log.csv")
	var lines []byte
	at := int64(1_750_000_000_000)
	for range 4000 {
		at += rnd.Int64N(40)
		if rnd.IntN(400) == 0 {
			at += rnd.Int64N(30_000)
		}
		lines = fmt.Appendf(lines, "%d,c%d\n", at, rnd.IntN(1+rnd.IntN(4)))
	}
	must.Do(t, os.WriteFile(log, lines, 0o600))
	const format = "csv:time=1@ms,client=2"
	for _, algorithm := range limit.AlgorithmNames() {
		t.Run(algorithm, func(t *testing.T) {
			limit := "[40 per 2s, 500 per 1m]"
			switch algorithm {
			case "calendar":
				limit = "[20 per second, 500 per minute]"
			case "in-flight":
				limit = "40 at once for 2s"
			case "gcra", "token-bucket":
				limit = "300 per 17s burst 9" // 300 does not divide 17 s
			}
			rules := writeRules(t, "version: 1\nlimits:\n- {name: x, key: client, algorithm: "+algorithm+", limit: "+limit+"}\n")
			replayed := replayDecisions(t, rules, format, log)
			compareDecisions(t, replayed, judgeLogged(newEngine(t, rules), readLog(t, log, format, rules)))
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// agreeLogs returns a log that is made here, with IPv6 clients, and the real ones
// where they are.
func agreeLogs(t *testing.T) []string {
	path := filepath.Join(t.TempDir(), "sample.log")
	f := must.Get(os.Create(path))(t)
	defer f.Close()
	must.Get(accesslogtest.Write(f, accesslogtest.Config{Seed: 1, Lines: 30_000}))(t)
	logs := []string{path}
	real := []string{"apache-ipv6-2015.log.gz", "apache-elastic-2015.log.gz", "honeypot-nginx-2019.log", "bp-nginx-2024.log.gz"}
	if testing.Short() {
		real = real[:1]
	}
	for _, name := range real {
		path := filepath.Join("..", "..", "..", "shared", "data", name)
		if _, err := os.Stat(path); err != nil {
			t.Logf("SKIP %s: the real logs are not here", name)
			continue
		}
		logs = append(logs, path)
	}
	return logs
}

// readLog returns the events of a log in replay's order: by their times, and events with the same time in the order of
// their lines.
func readLog(t *testing.T, log, format, rulesFile string) []*match.Event {
	t.Helper()
	file := must.Get(rules.Load(rulesFile))(t)
	fields := file.Fields()
	data := must.Get(os.ReadFile(log))(t)
	if strings.HasSuffix(log, ".gz") {
		r := must.Get(gzip.NewReader(bytes.NewReader(data)))(t)
		data = must.Get(io.ReadAll(r))(t)
	}
	f, ok := accesslog.Detect(data[:min(len(data), 64<<10)])
	if format != "auto" {
		f, ok = must.Get(accesslog.ParseFormat(format))(t), true
	}
	if !ok {
		t.Fatalf("%s has no known format", log)
	}
	parser := must.Get(f.NewParser(accesslog.Options{}))(t)
	var events []*match.Event
	var ev match.Event
	for line := range bytes.Lines(data) {
		line, _, _ = accesslog.CutLine(line)
		for ok := parser.Parse(line, &ev); ok; ok = parser.Next(&ev) {
			one := &match.Event{Time: time.UnixMilli(ev.Time.UnixMilli())}
			for _, f := range fields {
				if v := ev.GetNamed(f); len(v) > 0 {
					one.SetNamedString(f, string(v))
				}
			}
			events = append(events, one)
		}
	}
	slices.SortStableFunc(events, func(a, b *match.Event) int { return a.Time.Compare(b.Time) })
	return events
}

// newEngine returns the engine of a server with a rules file.
func newEngine(t *testing.T, rulesFile string) *engine.Engine {
	t.Helper()
	file := must.Get(rules.Load(rulesFile))(t)
	e := must.Get(engine.New(engine.Config{Rules: file, Budget: 1 << 30}))(t)
	t.Cleanup(e.Close)
	return e
}

// judgeLogged returns what e decides about the events of a log that it follows.
func judgeLogged(e *engine.Engine, events []*match.Event) []byte {
	decisions := make([]byte, 0, len(events))
	s := e.Session()
	for _, ev := range events {
		outcome := byte('D')
		if s.CheckLogged(ev).Allowed {
			outcome = 'A'
		}
		decisions = append(decisions, outcome)
	}
	return decisions
}
