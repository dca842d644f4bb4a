package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// sharedData is real traffic with the answers of an independent oracle. It is
// not part of the repository; tests that want it skip where it is not.
const sharedData = "../../shared/data"

// formatOf maps the formats in the oracle's manifest to names of formats.
var formatOf = map[string]string{
	"csv-io":        "csv:time=2@s,object=5",
	"json-mooncake": "json:time=timestamp@ms,object=hash_ids[]",
	"tsv-nasa":      "tsv:time=3@s,client=1,object=5@path",
}

type manifestEntry struct {
	File   string
	Format string
	Year   int
}

type oracleFile struct {
	Lines, Parsed, Bad int64
	First, Last        int64
	Client, Object     *oracleKeys
}

type oracleKeys struct {
	Distinct int
	Events   int64
	Top      []struct {
		Key   string
		Count int64
	}
	MaxWindow map[string][]struct {
		Key string
		Max int64
	} `json:"max_window"`
	Hot map[string]struct {
		Total int64
		First []struct {
			At  int64
			Key string
		}
		SHA256 string
	}
	Limit map[string]struct {
		Allowed, Denied int64
		DeniedKeys      int64 `json:"denied_keys"`
		Busiest         []struct {
			Key             string
			Allowed, Denied int64
		}
		SHA256 string `json:"decisions_sha256"`
	}
	Ban map[string]struct {
		Allowed, Denied, Bans int64
		BannedKeys            int64  `json:"banned_keys"`
		SHA256                string `json:"decisions_sha256"`
		StartsSHA256          string `json:"starts_sha256"`
	}
}

// eachLog runs f for every log of the manifest, with the configuration that
// reads it.
func eachLog(t *testing.T, f func(t *testing.T, c replay.Config, want *oracleFile)) {
	data, err := os.ReadFile(filepath.Join(sharedData, "manifest.json"))
	if err != nil {
		t.Skip("SKIP: the shared logs and their oracle are not here:", err)
	}
	var entries []manifestEntry
	must.Do(t, json.Unmarshal(data, &entries))
	if len(entries) != 17 {
		t.Fatalf("the manifest has %d logs, want 17", len(entries))
	}
	suffix := regexp.MustCompile(`\.(log|jsonl|csv|tsv)?(\.gz)?$`)
	for _, entry := range entries {
		name := suffix.ReplaceAllString(entry.File, "")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want oracleFile
			data := must.Get(os.ReadFile(filepath.Join(sharedData, "oracle", name+".json")))(t)
			must.Do(t, json.Unmarshal(data, &want))
			c := replay.Config{Files: []string{ofOracle(t, entry)}, Year: entry.Year, Resolution: time.Second}
			if spec, ok := formatOf[entry.Format]; ok {
				c.Format = spec
			}
			f(t, c, &want)
		})
	}
}

// oracleForm is the lines of syslog that the oracle takes for events.
var oracleForm = regexp.MustCompile(`sshd\[\d+\]: (Failed (password|none)|error: PAM: Authentication failure) for |DPT=`)

// hostForm is how lines begin with a virtual host and the address of the client.
var hostForm = regexp.MustCompile(`(?m)^( *[^ ]+) [^ ]+ `)

// ofOracle returns the path of a log. A syslog is copied with another message in each line that is no event for the oracle,
// since this reader finds more.
func ofOracle(t *testing.T, entry manifestEntry) string {
	t.Helper()
	path := filepath.Join(sharedData, entry.File)
	if entry.File == "honeypot-nginx-2019.log" { // the virtual host is the client for the oracle
		return writeFile(t, entry.File, hostForm.ReplaceAll(readFile(t, path), []byte("$1 - ")))
	}
	if !strings.HasPrefix(entry.Format, "syslog-") {
		return path
	}
	var kept []byte
	for line := range bytes.Lines(readFile(t, path)) {
		if !oracleForm.Match(line) || bytes.Contains(line, []byte("message repeated")) {
			line = append(line[:len("May  8 00:00:00"):len("May  8 00:00:00")], " gate sshd[1]: another\n"...)
		}
		kept = append(kept, line...)
	}
	return writeFile(t, strings.TrimSuffix(entry.File, ".gz"), kept)
}

// readFile returns the content of a file, decompressed.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		in = must.Get(gzip.NewReader(f))(t)
	}
	data := must.Get(io.ReadAll(in))(t)
	return data
}

func mustRun(t *testing.T, c replay.Config) *replay.Report {
	t.Helper()
	report := must.Get(replay.Run(t.Context(), c))(t)
	if len(report.Problems) > 0 {
		t.Fatal(report.Problems)
	}
	return report
}

// mustDecide is mustRun that also returns the decisions about events.
func mustDecide(t *testing.T, c replay.Config) (*replay.Report, []byte) {
	t.Helper()
	report, decisions, err := replay.RunDecisions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Problems) > 0 {
		t.Fatal(report.Problems)
	}
	return report, []byte(decisions)
}

func whatIf(t *testing.T, kind replay.Kind, format string, args ...any) replay.WhatIf {
	t.Helper()
	w := must.Get(replay.ParseWhatIf(kind, fmt.Sprintf(format, args...)))(t)
	return w
}

// numbers returns the decimal numbers in s.
func numbers(t *testing.T, s string) []int {
	t.Helper()
	var out []int
	for _, field := range regexp.MustCompile(`\d+`).FindAllString(s, -1) {
		n := must.Get(strconv.Atoi(field))(t)
		out = append(out, n)
	}
	return out
}

// unLatin1 returns the bytes that the oracle's JSON shows as characters up to
// U+00FF; keys of JSON logs are text and stay.
func unLatin1(s string, text bool) string {
	if text {
		return s
	}
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

func isText(r *replay.Report) bool { return strings.HasPrefix(r.Format, "json") }

func checkTop(t *testing.T, r *replay.Report, want *oracleKeys) {
	t.Helper()
	if len(r.Top) != len(want.Top) {
		t.Fatalf("%d top keys, want %d", len(r.Top), len(want.Top))
	}
	for i, k := range want.Top {
		if got := r.Top[i]; got.Values()[0] != unLatin1(k.Key, isText(r)) || got.Count != k.Count {
			t.Errorf("top key %d: %q %d, want %q %d", i, got.Key, got.Count, k.Key, k.Count)
		}
	}
	for span, keys := range want.MaxWindow {
		for i, k := range keys {
			if got := r.Top[i].Peaks[span+"s"]; got != k.Max {
				t.Errorf("peak of %q in %s s: %d, want %d", k.Key, span, got, k.Max)
			}
		}
	}
	if r.Keys != want.Distinct {
		t.Errorf("%d distinct keys, want %d", r.Keys, want.Distinct)
	}
}

func checkHot(t *testing.T, r *replay.Report, rules []replay.RuleReport, names []string, want *oracleKeys) {
	t.Helper()
	for i, name := range names {
		got, w := rules[i], want.Hot[name]
		if *got.HotKeys != w.Total || got.SHA256 != w.SHA256 {
			t.Errorf("hot %s: %d keys, digest %s; want %d, %s", name, *got.HotKeys, got.SHA256, w.Total, w.SHA256)
		}
		if len(got.FirstHot) != len(w.First) {
			t.Errorf("hot %s: %d first edges, want %d", name, len(got.FirstHot), len(w.First))
			continue
		}
		for j, first := range w.First {
			if m := got.FirstHot[j]; m.T.String() != strconv.FormatInt(first.At, 10) || m.Values()[0] != unLatin1(first.Key, isText(r)) {
				t.Errorf("hot %s, edge %d: %s %q, want %d %q", name, j, m.T, m.Key, first.At, first.Key)
			}
		}
	}
}

// TestOracle holds counts, top keys, peaks, exact limits in both refusal modes,
// bans and hot keys of every log to the oracle, digests included.
func TestOracle(t *testing.T) {
	eachLog(t, func(t *testing.T, c replay.Config, want *oracleFile) {
		c.Algorithm = ratelimit.Exact
		if want.Object != nil {
			t.Run("object, all else", func(t *testing.T) { checkOracle(t, c, want, "object", want.Object, "/rejected-not-counted") })
		}
		if want.Client == nil {
			return
		}
		if want.Object == nil {
			t.Run("client", func(t *testing.T) { checkOracle(t, c, want, "client", want.Client, "/rejected-not-counted") })
		} else {
			want.Object.Hot = nil // is done
		}
		want.Client.Hot, want.Client.Ban = nil, nil
		c.CountRefused = true
		t.Run("client, refused count", func(t *testing.T) { checkOracle(t, c, want, "client", want.Client, "/rejected-counted") })
	})
}

// checkOracle replays a log once, for its top keys by key, its hot rules, its
// limits in one refusal mode, and its bans.
func checkOracle(t *testing.T, c replay.Config, want *oracleFile, key string, top *oracleKeys, mode string) {
	t.Helper()
	c.Key = key
	var objects, clients, limits, bans []string
	add := func(kind replay.Kind, field, format string, args ...any) {
		w := whatIf(t, kind, format, args...)
		w.Key = field
		c.WhatIfs = append(c.WhatIfs, w)
	}
	if want.Object != nil {
		objects = slices.Sorted(maps.Keys(want.Object.Hot))
		for _, name := range objects {
			add(replay.Hot, "object", "%s", name)
		}
	}
	if want.Client != nil {
		clients = slices.Sorted(maps.Keys(want.Client.Hot))
		for _, name := range clients {
			add(replay.Hot, "client", "%s", name)
		}
		for _, name := range slices.Sorted(maps.Keys(want.Client.Limit)) {
			if strings.HasSuffix(name, mode) {
				limits = append(limits, name)
				n := numbers(t, name)
				add(replay.Limit, "client", "%d/%ds", n[0], n[1])
			}
		}
		bans = slices.Sorted(maps.Keys(want.Client.Ban))
		for _, name := range bans {
			n := numbers(t, name)
			add(replay.Ban, "client", "%d/%ds:%ds", n[0], n[1], n[2])
		}
	}
	r := mustRun(t, c)
	checkTotals(t, r, want)
	checkTop(t, r, top)
	rest := r.Rules
	next := func(n int) []replay.RuleReport {
		these := rest[:n]
		rest = rest[n:]
		return these
	}
	if want.Object != nil {
		checkHot(t, r, next(len(objects)), objects, want.Object)
	}
	if want.Client != nil {
		checkHot(t, r, next(len(clients)), clients, want.Client)
		checkLimits(t, r, next(len(limits)), limits, want.Client)
		checkBans(t, next(len(bans)), bans, want.Client)
	}
}

func checkTotals(t *testing.T, r *replay.Report, want *oracleFile) {
	t.Helper()
	if r.Lines != want.Lines || r.Parsed != want.Parsed || r.Bad+r.Skipped != want.Bad {
		t.Errorf("lines, parsed, bad: %d %d %d, want %d %d %d", r.Lines, r.Parsed, r.Bad+r.Skipped, want.Lines, want.Parsed, want.Bad)
	}
	if r.First.String() != strconv.FormatInt(want.First, 10) || r.Last.String() != strconv.FormatInt(want.Last, 10) {
		t.Errorf("from %s to %s, want %d to %d", r.First, r.Last, want.First, want.Last)
	}
}

func checkLimits(t *testing.T, r *replay.Report, got []replay.RuleReport, names []string, want *oracleKeys) {
	t.Helper()
	for i, name := range names {
		g, w := got[i], want.Limit[name]
		if *g.Allowed != w.Allowed || *g.Refused != w.Denied || *g.KeysRefused != w.DeniedKeys || g.SHA256 != w.SHA256 {
			t.Errorf("limit %s: allowed %d, refused %d of %d keys, digest %s; want %+v", name, *g.Allowed, *g.Refused, *g.KeysRefused, g.SHA256, w)
		}
		for j, k := range w.Busiest {
			if b := g.Busiest[j]; b.Values()[0] != unLatin1(k.Key, isText(r)) || b.Allowed != k.Allowed || b.Refused != k.Denied {
				t.Errorf("limit %s: busiest %+v, want %+v", name, b, k)
			}
		}
	}
}

func checkBans(t *testing.T, got []replay.RuleReport, names []string, want *oracleKeys) {
	t.Helper()
	for i, name := range names {
		g, w := got[i], want.Ban[name]
		if *g.Allowed != w.Allowed || *g.Refused != w.Denied || *g.Bans != w.Bans || *g.BannedKeys != w.BannedKeys ||
			g.SHA256 != w.SHA256 || g.StartsSHA256 != w.StartsSHA256 {
			t.Errorf("ban %s: allowed %d, refused %d, bans %d of %d keys, digests %s %s; want %+v",
				name, *g.Allowed, *g.Refused, *g.Bans, *g.BannedKeys, g.SHA256, g.StartsSHA256, w)
		}
	}
}
