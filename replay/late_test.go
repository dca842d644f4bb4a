package replay_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// sortedForm returns the part of a report that must be the same for a stream and for the
// sorted log.
func sortedForm(t testing.TB, r *replay.Report) map[string]any {
	t.Helper()
	all := aboutEvents(t, r)
	delete(all, "late")
	for i := range r.Rules {
		all[fmt.Sprint("most refused ", i)] = fmt.Sprint(replay.MostRefused(&r.Rules[i]))
	}
	return all
}

// replayed runs c, which may have problems, and returns the decisions too.
func replayed(t testing.TB, c replay.Config) (*replay.Report, string) {
	t.Helper()
	if c.Rules == nil && len(c.WhatIfs) != 1 {
		r := must.Get(replay.Run(t.Context(), c))(t)
		return r, ""
	}
	r, decisions, err := replay.RunDecisions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, decisions
}

const streamRules = `version: 1
limits:
  - {name: all, key: client, limit: 20 per 1m, ban: {after: 10 refusals in 1m, for: 2m, factor: 2, max: 1h}}
  - {name: paths, key: [client, path], limit: 3 per 10s}
  - {name: agents, key: agent, limit: 200 per 1m, mode: shadow}
bans:
  - {name: flood, key: client, after: 60 hits in 1m, for: 10m}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 5 per 10s}
`

// algorithmRules has each algorithm: a stream may delete of a key only what is in no window.
func algorithmRules() string {
	text := "version: 1\nlimits:\n"
	for i, name := range limit.Algorithms() {
		limit := map[string]string{"calendar": "30 per hour", "in-flight": "4 at once for 20s"}[name]
		text += fmt.Sprintf("- {name: %s, key: %s, algorithm: %s, limit: %s, mode: shadow, ban: {after: 3 refusals in 2m, for: 1m, factor: 2, max: 1h, remember: %dm}}\n",
			name, []string{"client", "[client, path]"}[i%2], name, cmp.Or(limit, "4 per 20s"), 1+10*i)
	}
	return text
}

// streamConfigs are the rules that streams and sorted replays are compared under.
func streamConfigs(t testing.TB) map[string]replay.Config {
	return map[string]replay.Config{
		"what-ifs": {WhatIfs: []replay.WhatIf{
			mustWhatIf(t, replay.Limit, "5/10s"), mustWhatIf(t, replay.Ban, "20/1m:10m"), mustWhatIf(t, replay.Hot, "path:5/10s"), mustWhatIf(t, replay.Hot, "client:200/1m"),
		}},
		"by path":    {Key: "path", Algorithm: ratelimit.Exact, WhatIfs: []replay.WhatIf{mustWhatIf(t, replay.Limit, "10/1m")}},
		"rules":      {Rules: mustRules(t, streamRules)},
		"algorithms": {Rules: mustRules(t, algorithmRules())},
		"nothing":    {Top: 3},
	}
}

// lateness returns by how much the latest line of a log in format clf is older than the
// newest before it.
func lateness(t testing.TB, log []byte) (most time.Duration) {
	t.Helper()
	newest := time.Time{}
	for line := range bytes.Lines(log) {
		if at, ok := clfTime(t, line); ok {
			if at.After(newest) {
				newest = at
			}
			most = max(most, newest.Sub(at))
		}
	}
	return most
}

// clfTime returns the time of a line of clf, false for a bad line.
func clfTime(t testing.TB, line []byte) (at time.Time, ok bool) {
	t.Helper()
	m := clfPattern.FindSubmatch(line)
	if m == nil {
		return at, false
	}
	at = must.Get(time.Parse("02/Jan/2006:15:04:05 -0700", string(m[2])))(t)
	return at, true
}

// TestConcurrentStreamIsSorted streams logs in which no line is later than the lateness: the report and the decisions are
// those of the sorted log, however the log is cut into files, blocks and chunks.
func TestConcurrentStreamIsSorted(t *testing.T) {
	rnd := randtest.New(t)
	rounds, lines := 12, 5000
	switch {
	case testing.Short():
		rounds, lines = 2, 1000
	}
	configs := streamConfigs(t)
	for range rounds {
		log := generated(t, rnd, "clf", accesslogtest.Config{Lines: lines, Duration: 3 * time.Hour})
		files, most := dealt(t, rnd, log)
		for name, c := range configs {
			c.Format, c.Files = "clf", files
			want, wantDecisions := replayed(t, c)
			c.Cores = 1 + rnd.IntN(4)
			c.Lateness = max(most, 1) + time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, 5*time.Minute))))
			c.InPieces(pick(rnd, 1, 50, 1000))
			got, decisions := replayed(t, c)
			if got.Late.Events != 0 {
				t.Fatalf("%s: %d late events of a lateness of %v; none is later than %v", name, got.Late.Events, c.Lateness, most)
			}
			if a, b := sortedForm(t, got), sortedForm(t, want); !reflect.DeepEqual(a, b) {
				t.Errorf("%s: the report is\n%v\nwant\n%v", name, a, b)
			}
			if decisions != wantDecisions {
				t.Errorf("%s: the decisions differ", name)
			}
		}
	}
}

// dealt writes the lines of a log into some files, one file after the other or each line into any file, and returns by how
// much the latest line in them is late.
func dealt(t testing.TB, rnd interface{ IntN(int) int }, log []byte) (files []string, most time.Duration) {
	t.Helper()
	logs := make([]bytes.Buffer, 1+rnd.IntN(4))
	each, n, total := rnd.IntN(2) == 0, 0, bytes.Count(log, []byte("\n"))
	for line := range bytes.Lines(log) {
		to := n * len(logs) / total
		if each {
			to = rnd.IntN(len(logs))
		}
		logs[to].Write(line)
		n++
	}
	dir := t.TempDir()
	for i := range logs {
		most = max(most, lateness(t, logs[i].Bytes()))
		files = append(files, filepath.Join(dir, fmt.Sprint(i)))
		must.Do(t, os.WriteFile(files[i], logs[i].Bytes(), 0o600))
	}
	if rnd.IntN(2) == 0 {
		slices.Reverse(files) // as a pattern of rotated files is expanded
	}
	return files, most
}

// TestLateEventsAreLeftOut has lines that are later than the lateness: the report is the
// same as for the log without them, and names them.
func TestLateEventsAreLeftOut(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 1500, Duration: time.Hour})
		c := streamConfigs(t)[pick(rnd, "what-ifs", "rules")]
		c.Format, c.Cores, c.Lateness = "clf", 1+rnd.IntN(3), time.Duration(1+rnd.IntN(20))*time.Second
		path := writeFile(t, "access.log", log)
		want, rest := lateLines(t, path, log, c.Lateness)
		c.InPieces(pick(rnd, 1, 100))
		c.Files = []string{path}
		got, decisions := replayed(t, c)
		if !reflect.DeepEqual(got.Late, &want) {
			t.Errorf("lateness %v: late %+v\nwant %+v", c.Lateness, got.Late, want)
		}
		c.Files, c.Lateness = []string{writeFile(t, "rest.log", rest)}, 0
		sorted, wantDecisions := replayed(t, c)
		a, b := sortedForm(t, got), sortedForm(t, sorted)
		if !reflect.DeepEqual(a, b) || decisions != wantDecisions {
			t.Errorf("the report is\n%v\nwant the report on the other lines\n%v", a, b)
		}
	}
}

// lateLines finds the late lines of a log by their definition, and returns the log without them.
func lateLines(t testing.TB, path string, log []byte, lateness time.Duration) (late replay.LateReport, rest []byte) {
	t.Helper()
	late.First = []replay.LateEvent{}
	newest, number := time.Time{}, int64(0)
	for line := range bytes.Lines(log) {
		number++
		if at, ok := clfTime(t, line); ok {
			if at.After(newest) {
				newest = at
			}
			if behind := newest.Sub(at); behind > lateness {
				late.Events++
				late.MostSeconds = max(late.MostSeconds, behind.Seconds())
				if len(late.First) < 10 {
					late.First = append(late.First, replay.LateEvent{File: path, Line: number, T: replay.Epoch{Time: time.Unix(at.Unix(), 0)}, Seconds: behind.Seconds()})
				}
				continue
			}
		}
		rest = append(rest, line...)
	}
	return late, rest
}

// TestStreamOfRealLogs streams all real logs with their lateness according to the oracle: no event is late, the report is
// that of the sorted log, which other tests compare with the oracle, and with a second less there are late events.
func TestStreamOfRealLogs(t *testing.T) {
	eachLog(t, func(t *testing.T, c replay.Config, _ *oracleFile) {
		if testing.Short() {
			t.Skip("SKIP: the long form streams the real logs")
		}
		data := must.Get(os.ReadFile(filepath.Join(sharedData, "oracle", strings.TrimSuffix(filepath.Base(t.Name()), "/")+".json")))(t)
		var oracle struct {
			Order struct {
				Max int64 `json:"max_lateness"`
			}
		}
		must.Do(t, json.Unmarshal(data, &oracle))
		if c.Key = "client"; strings.HasPrefix(filepath.Base(t.Name()), "cloudphysics") || strings.HasPrefix(filepath.Base(t.Name()), "mooncake") {
			c.Key = "object"
		}
		c.WhatIfs = []replay.WhatIf{mustWhatIf(t, replay.Limit, "20/10s"), mustWhatIf(t, replay.Ban, "60/60s:600s"), mustWhatIf(t, replay.Hot, c.Key+":50/60s")}
		c.InPieces(3000)
		want, _ := replayed(t, c)
		c.Lateness = max(time.Duration(oracle.Order.Max)*time.Second, 1)
		got, _ := replayed(t, c)
		if got.Late.Events != 0 {
			t.Errorf("%d late events of a lateness of %v", got.Late.Events, c.Lateness)
		}
		if a, b := sortedForm(t, got), sortedForm(t, want); !reflect.DeepEqual(a, b) {
			t.Errorf("the report is\n%v\nwant\n%v", a, b)
		}
		if oracle.Order.Max == 0 {
			return
		}
		c.Lateness = max(c.Lateness-time.Second, 1)
		got, _ = replayed(t, c)
		if got.Late.Events == 0 || got.Late.MostSeconds != float64(oracle.Order.Max) {
			t.Errorf("with a lateness of %v %d events are late, at most by %v s, want %d s", c.Lateness, got.Late.Events, got.Late.MostSeconds, oracle.Order.Max)
		}
	})
}

// A lineSource yields a number of lines of smallFormat, a hundred a second from a number of clients, and measures the live
// memory after each of some pieces, when all lines read so far are also judged: how far a reader is ahead depends on the
// machine.
type lineSource struct {
	left, until int
	clients     int
	digits      int // of the number of a client
	buf         []byte
	most        uint64
}

func (s *lineSource) Read(p []byte) (int, error) {
	for len(s.buf) < len(p) && s.left > 0 {
		s.left--
		s.buf = fmt.Appendf(s.buf, "%d,client-%0*d\n", 1_700_000_000-s.left/100, s.digits, s.left%s.clients)
		if s.left%s.until == 0 {
			var m runtime.MemStats
			synctest.Wait()
			runtime.GC()
			runtime.ReadMemStats(&m)
			s.most = max(s.most, m.HeapAlloc)
		}
	}
	n := copy(p, s.buf)
	s.buf = append(s.buf[:0], s.buf[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// memoryOf replays a log and returns the most live memory that this takes.
func memoryOf(t *testing.T, src lineSource, lateness time.Duration, whatIfs ...replay.WhatIf) int {
	t.Helper()
	lines := src.left
	src.until = lines / 20
	for range 2 { // what a sync.Pool is in lives for two collections
		runtime.GC()
	}
	c := replay.Config{Files: []string{"-"}, Stdin: &src, Format: smallFormat, Lateness: lateness, Cores: 2, WhatIfs: whatIfs}
	c.InPieces(10_000)
	synctest.Test(t, func(t *testing.T) {
		if r := mustRun(t, c); r.Events != int64(lines) {
			t.Fatalf("%d events, want %d", r.Events, lines)
		}
	})
	return int(src.most)
}

// TestStreamMemory holds the memory of a stream to a bound that the sorted replay of the
// same log exceeds.
func TestStreamMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: the long form measures memory")
	}
	// A stream takes 3 MiB, and all events 35 MiB.
	const bound, longest = 10 << 20, 3650 * 24 * time.Hour
	log, limit := lineSource{left: 2_600_000, clients: 7}, mustWhatIf(t, replay.Limit, "60/1m")
	if most := memoryOf(t, log, time.Minute, limit); most > bound {
		t.Errorf("a stream takes %d bytes, want at most %d", most, bound)
	}
	if most := memoryOf(t, log, longest, limit); most < bound {
		t.Errorf("all events take %d bytes, so a bound of %d proves nothing", most, bound)
	}
}

// TestStreamDropsKeys streams a log in which each client comes once. A limit and a hot rule keep nothing for clients in no
// window, but two numbers of events per key.
func TestStreamDropsKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: the long form measures memory")
	}
	const lines, bound = 200_000, 70
	log := lineSource{left: lines, clients: lines, digits: 80}
	none := memoryOf(t, log, time.Minute)
	for _, rule := range []replay.WhatIf{mustWhatIf(t, replay.Limit, "200/1m"), mustWhatIf(t, replay.Hot, "client:200/1m")} {
		if perKey := (memoryOf(t, log, time.Minute, rule) - none) / lines; perKey > bound { // 25 and 12; 118 and 193 if all keys are kept
			t.Errorf("%s %s takes %d bytes per client; want at most %d", rule.Kind, rule.Text, perKey, bound)
		}
	}
}

// TestStreamErrors has what a stream cannot do.
func TestStreamErrors(t *testing.T) {
	for want, c := range map[string]replay.Config{
		"--lateness: -1s: must be 0 to 87600h":                              {Lateness: -time.Second},
		"--lateness: 87600h0m1s: must be 0 to 87600h":                       {Lateness: 87_600*time.Hour + time.Second},
		"--lateness: must not be given with a distance such as --since -2h": {Lateness: 1, Cut: replay.Cut{Since: replay.Bound{BeforeEnd: time.Hour}}},
	} {
		c.Files = []string{"-"}
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c := replay.Config{Files: []string{writeFile(t, "auth.log", []byte(sshd("May  8 00:00:00")+sshd("May  8 00:00:01")))}, Lateness: 1}
	if r, err := replay.Run(t.Context(), c); err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "its times have no year") {
		t.Errorf("%v, %+v", err, r)
	}
	c.Year = 2020
	if r := mustRun(t, c); r.Events != 2 || r.First.Unix() != time.Date(2020, 5, 8, 0, 0, 0, 0, time.UTC).Unix() {
		t.Errorf("with a year: %+v", r)
	}
	c = replay.Config{Files: []string{writeFile(t, "auth.log", []byte(sshd("2020-05-08T00:00:00Z")+sshd("2020-05-08T00:00:01Z")))}, Lateness: 1}
	if r := mustRun(t, c); r.Events != 2 || r.First.Unix() != time.Date(2020, 5, 8, 0, 0, 0, 0, time.UTC).Unix() {
		t.Errorf("with a year in each line: %+v", r)
	}
}
