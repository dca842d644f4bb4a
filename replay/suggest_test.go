package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

func mustSuggest(t *testing.T, c replay.SuggestConfig) *replay.Suggestion {
	t.Helper()
	s := must.Get(replay.Suggest(t.Context(), c))(t)
	return s
}

// enough reports whether this many of the keys may be refused, in whole numbers.
func enough(keys, refused, shareOfMillion int64) bool {
	return (keys-refused)*1_000_000 >= keys*shareOfMillion
}

// TestSuggest looks for the least N of each span by trying 0, 1, 2 and so on with the
// reference, for random shares of the clients of a small random log.
func TestSuggest(t *testing.T) {
	rnd := randtest.New(t)
	found := make(map[uint64]bool)
	for range 20 {
		log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 400, Duration: time.Duration(1+rnd.IntN(4000)) * time.Second})
		hits := hitsOf(ordered(readLog(t, "clf", 0, log).records, time.Second), "client")
		share := pick[int64](rnd, 1_000_000, 999_000, 990_000, 900_000, 500_000, 333_333, 1)
		s := mustSuggest(t, replay.SuggestConfig{
			Config: replay.Config{Files: []string{writeFile(t, "log", log)}, Format: "clf", Cores: 1 + rnd.IntN(3)},
			Share:  float64(share) / 10_000,
		})
		clients := make(map[string]bool)
		for _, h := range hits {
			clients[h.key] = true
		}
		for _, l := range s.Limits {
			refusedBy := func(n uint64) int64 {
				refused := make(map[string]bool)
				for i, d := range refLimit(hits, n, time.Duration(l.SpanSeconds)*time.Second, false) {
					if d == 'D' {
						refused[hits[i].key] = true
					}
				}
				return int64(len(refused))
			}
			n, less := uint64(0), int64(0)
			for !enough(int64(len(clients)), refusedBy(n), share) {
				less = refusedBy(n)
				n++
			}
			if l.N > 128 {
				continue // counts in slots: see TestSuggestOfRealLogs
			}
			if l.N != n || l.Keys != int64(len(clients)) || l.KeysRefused != refusedBy(n) || l.OneLessRefuses != less {
				t.Errorf("share %d: %+v; want %d of %d keys, refused %d, by one less %d", share, l, n, len(clients), refusedBy(n), less)
			}
			found[l.N] = true
		}
		if _, err := rules.Parse("suggested", []byte(s.Rules)); err != nil {
			t.Errorf("%v\n%s", err, s.Rules)
		}
	}
	if len(found) < 5 {
		t.Errorf("only the limits %v were found: the test has no teeth", found)
	}
}

// TestSuggestKeepsNetworks reads the suggested rules: they must have the key for which they were
// found.
func TestSuggestKeepsNetworks(t *testing.T) {
	var log strings.Builder
	for i := range 40 {
		fmt.Fprintf(&log, "2001:db8::%x - - [02/Mar/2026:10:00:%02d +0000] \"GET /%d HTTP/1.1\" 200 1\n", i%7+1, i, i%3)
	}
	file := writeFile(t, "log", []byte(log.String()))
	for _, key := range []string{"client/32,128", "client/32,128,path", "client/24,96,path", "client/24,path", "path,client/32,65", "user | client/24,48"} {
		s := must.Get(replay.Suggest(t.Context(), replay.SuggestConfig{Config: replay.Config{Files: []string{file}, Key: key}}))(t)
		f := must.Get(rules.Parse("rules.yaml", []byte(s.Rules)))(t)
		want, err := rulevalue.ParseKey(match.Fold{}, key)
		if got := f.Limits.Rules()[0].Key; err != nil || !keyvalue.Equal(got, want) {
			t.Errorf("%s: the key of the rules is %s %+v, want %+v\n%s", key, got, got.Fold(), want.Fold(), s.Rules)
		}
	}
}

// TestSuggestOfRealLogs has suggestions for every log. A program in Python, with its own parsers and windows, and replays
// with N and N-1 confirm each figure.
func TestSuggestOfRealLogs(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("SKIP the check in Python: there is no python3 here")
	}
	entries := manifestEntries(t)
	eachLog(t, func(t *testing.T, c replay.Config, want *oracleFile) {
		if want.Lines > 50_000 && os.Getenv("LATELY_LONG") == "" || want.Lines > 10_000 && testing.Short() {
			t.Skip("SKIP: with LATELY_LONG=1 the large logs are checked, too, and in short mode only the small ones")
		}
		if want.Client == nil {
			c.Key = "object"
		}
		share := int64(999_000)
		if want.Lines%2 == 0 {
			share = 950_000
		}
		s := mustSuggest(t, replay.SuggestConfig{Config: c, Share: float64(share) / 10_000})
		var limits [][2]uint64
		for _, l := range s.Limits {
			span := uint64(l.SpanSeconds)
			limits = append(limits, [2]uint64{span, l.N}, [2]uint64{span, l.N - 1})
			if !enough(l.Keys, l.KeysRefused, share) || enough(l.Keys, l.OneLessRefuses, share) {
				t.Errorf("%d per %ds refuses %d of %d keys, one less %d: it is not the least", l.N, span, l.KeysRefused, l.Keys, l.OneLessRefuses)
			}
		}
		file := must.Get(rules.Parse("suggested", []byte(s.Rules)))(t)
		checkSuggestedTotals(t, c, s, file)
		if python == "" {
			return
		}
		folder := must.Get(filepath.Abs(sharedData))(t)
		i := slices.IndexFunc(entries, func(e map[string]any) bool { return strings.HasSuffix(c.Files[0], "/"+fmt.Sprint(e["file"])) })
		task := must.Get(json.Marshal(map[string]any{"oracle": folder, "entry": entries[i], "object": c.Key == "object", "limits": limits}))(t)
		cmd := exec.Command(python, "-B", filepath.Join("testdata", "suggest.py"))
		cmd.Stdin = bytes.NewReader(task)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		var got [][2]int64
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil || len(got) != 2*len(s.Limits) {
			t.Fatalf("%v: %s", err, out)
		}
		for i, l := range s.Limits {
			if got[2*i] != [2]int64{l.Keys, l.KeysRefused} || got[2*i+1] != [2]int64{l.Keys, l.OneLessRefuses} {
				t.Errorf("%+v; Python counts %v, and %v for one less", l, got[2*i], got[2*i+1])
			}
		}
	})
}

// checkSuggestedTotals compares the totals of all limits with a replay of the file.
func checkSuggestedTotals(t *testing.T, c replay.Config, s *replay.Suggestion, file *rules.File) {
	t.Helper()
	c.Rules, c.Sort, c.Top = file, replay.SortRefused, 1<<20 // all keys that are refused
	r := mustRun(t, c)
	bans := int64(0)
	for _, rule := range r.Rules {
		bans += *rule.Bans
	}
	if len(r.Rules) != len(s.Limits) || r.All.Refused != s.All.Refused || int64(len(r.Top)) != s.All.KeysRefused || bans != s.All.Bans {
		t.Errorf("all together: %+v; a replay has %d refused of %d keys, %d bans", s.All, r.All.Refused, len(r.Top), bans)
	}
}

func manifestEntries(t *testing.T) (entries []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sharedData, "manifest.json"))
	if err != nil {
		t.Skip("SKIP: the shared logs and their oracle are not here:", err)
	}
	must.Do(t, json.Unmarshal(data, &entries))
	return entries
}

// TestSuggestForGroups has separate limits for logins, whose file replays with the proposed results, and a key that tries
// to end a comment.
func TestSuggestForGroups(t *testing.T) {
	var log strings.Builder
	for sec := range int64(100) {
		log.WriteString(clfAt(1_700_000_000+sec, "192.0.2.1", "/"))
		log.WriteString(clfAt(1_700_000_000+sec/9*9, "x\u2028version:9", "/login"))
	}
	s := mustSuggest(t, replay.SuggestConfig{
		Config: replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: "clf"},
		Share:  50, Groups: []string{"path /login", "path  /nowhere", "path /log*"},
	})
	var names []string
	for _, l := range s.Limits {
		names = append(names, l.Name)
	}
	if want := []string{"client-1s", "client-1m", "path-login-1s", "path-login-1m", "path-log-1s", "path-log-1m"}; !slices.Equal(names, want) {
		t.Errorf("limits %v, want %v", names, want)
	}
	file, err := rules.Parse("suggested", []byte(s.Rules))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Rules)
	}
	if l := s.Limits[2]; l.N != 9 || l.Events != 100 || l.Keys != 1 || fmt.Sprint(file.Limits.Rules()[2].When.Path) != "[/login]" {
		t.Errorf("%+v, when %v", l, file.Limits.Rules()[2].When)
	}
	if l := s.Limits[0]; l.N != 1 || l.KeysRefused != 1 || l.Refused != 98 || !strings.Contains(s.Rules, `x\u2028version:9`) {
		t.Errorf("%+v\n%s", l, s.Rules)
	}
	if len(s.Problems) != 1 || s.Problems[0] != "--group path  /nowhere: no event matches" {
		t.Errorf("problems %q", s.Problems)
	}
	for _, c := range []replay.SuggestConfig{{Share: -1}, {Share: 101}, {Share: 0.00001}, {Groups: []string{"path"}}, {Groups: []string{"colour red"}}} {
		c.Files, c.Stdin = []string{"-"}, strings.NewReader("")
		if s, err := replay.Suggest(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%+v: %v, %v", c, s, err)
		}
	}
}
