package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/resptest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
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

// Replay and serve are one engine: the same rules file and the same events, sent
// with their times in replay's order, give the same decisions, byte by byte.
func TestServeAgreesWithReplay(t *testing.T) {
	path := writeRules(t, agreeRules)
	logs := agreeLogs(t)
	if testing.Short() {
		logs = logs[:1]
	}
	for _, log := range logs {
		t.Run(filepath.Base(log), func(t *testing.T) {
			replayed := replayDecisions(t, path, "auto", log)
			compareDecisions(t, replayed, askServer(t, path, readLog(t, log, "auto", path)))
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
	at := int64(1_790_000_000_000)
	for range 6000 {
		at += rnd.Int64N(40)
		client := rnd.IntN(1 + rnd.IntN(20))
		lines = fmt.Appendf(lines, "%d,c%d,/%d\n", at, client, 3*client+rnd.IntN(1+rnd.IntN(3)))
	}
	if err := os.WriteFile(log, lines, 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		for _, k := range report.Rules[len(report.Rules)-1].FirstHot {
			replayed = append(replayed, fmt.Sprintf("%s %.3f", k.Key[0], k.T))
		}
		s := serve(t, "--rules", rules, "--memory-limit", "1GiB", "--event-time")
		askServing(t, s, readLog(t, log, format, rules))
		res, err := http.Get(s.http + "/v1/hot")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var list struct {
			Hot []struct {
				Key   []string
				Since time.Time
			}
		}
		if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, k := range slices.Backward(list.Hot) {
			served = append(served, fmt.Sprintf("%s %.3f", k.Key[0], float64(k.Since.UnixMilli())/1e3))
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
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.All.SHA256
}

func compareDecisions(t *testing.T, replayed string, served []byte) {
	t.Helper()
	if len(served) < 1000 || !bytes.Contains(served, []byte{'D'}) || !bytes.Contains(served, []byte{'A'}) {
		t.Fatalf("%d decisions, %d refusals: no test", len(served), bytes.Count(served, []byte{'D'}))
	}
	if sum := sha256.Sum256(served); hex.EncodeToString(sum[:]) != replayed {
		t.Errorf("the digest of %d decisions served is %x, that of those replayed is %s", len(served), sum, replayed)
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
	at := int64(1_790_000_000_000)
	for range 4000 {
		at += rnd.Int64N(40)
		if rnd.IntN(400) == 0 {
			at += rnd.Int64N(30_000)
		}
		lines = fmt.Appendf(lines, "%d,c%d\n", at, rnd.IntN(1+rnd.IntN(4)))
	}
	if err := os.WriteFile(log, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	const format = "csv:time=1@ms,client=2"
	for _, algorithm := range replay.Algorithms() {
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
			compareDecisions(t, replayed, askServer(t, rules, readLog(t, log, format, rules)))
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
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := accesslogtest.Write(f, accesslogtest.Config{Seed: 1, Lines: 30_000}); err != nil {
		t.Fatal(err)
	}
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

// A sent is one event as a command.
type sent struct {
	ms      int64
	command []byte
}

// readLog returns the events of a log in replay's order: by their times, and those
// of one time as they come.
func readLog(t *testing.T, log, format, rulesFile string) []sent {
	t.Helper()
	file, err := rules.Load(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	fields := file.Fields()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(log, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	f, ok := accesslog.Detect(data[:min(len(data), 64<<10)])
	if format != "auto" {
		f, err = accesslog.ParseFormat(format)
		ok = err == nil
	}
	if !ok {
		t.Fatalf("%s has no format that is known", log)
	}
	parser, err := f.NewParser(accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var events []sent
	var ev match.Event
	for line := range bytes.Lines(data) {
		line, _, _ = accesslog.CutLine(line)
		for ok := parser.Parse(line, &ev); ok; ok = parser.Next(&ev) {
			args := []string{"CHECK"}
			for _, f := range fields {
				if v := ev.GetNamed(f); len(v) > 0 {
					args = append(args, f, string(v))
				}
			}
			if len(args) == 1 {
				t.Fatal("an event without fields")
			}
			ms := ev.Time.UnixMilli()
			events = append(events, sent{ms, resp.AppendCommand(nil, append(args, "AT", fmt.Sprint(ms))...)})
		}
	}
	slices.SortStableFunc(events, func(a, b sent) int { return cmp.Compare(a.ms, b.ms) })
	return events
}

// askServer sends the events to a fresh server and returns what it decides.
func askServer(t *testing.T, rulesFile string, events []sent) []byte {
	t.Helper()
	return askServing(t, serve(t, "--rules", rulesFile, "--memory-limit", "1GiB", "--event-time"), events)
}

// askServing is askServer for a server that runs.
func askServing(t *testing.T, s *serving, events []sent) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", s.resp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		var batch []byte
		for i, ev := range events {
			if batch = append(batch, ev.command...); len(batch) > 32<<10 || i == len(events)-1 {
				if _, err := conn.Write(batch); err != nil {
					return // the reader finds out
				}
				batch = batch[:0]
			}
		}
	}()
	replies := resptest.NewReader(conn)
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	decisions := make([]byte, 0, len(events))
	for range events {
		v, err := replies.Next()
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, "DA"[v.Elems[0].Int()])
	}
	return decisions
}
