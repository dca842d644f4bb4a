package replay_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// A side is the result of a separate replay of one rules file.
type side struct {
	decisions string
	bans      map[string][][2]float64 // from and to, by the fields and values of the key
	started   int64
}

func sideOf(t *testing.T, c replay.Config, file *rules.File) side {
	t.Helper()
	c.Rules = file
	r, decisions, err := replay.RunDecisions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s := side{decisions: decisions, bans: make(map[string][][2]float64)}
	for _, rule := range r.Rules {
		if rule.Mode == "shadow" || rule.Bans == nil {
			continue
		}
		if rule.BansLeftOut > 0 {
			t.Fatal("the report does not have all bans")
		}
		s.started += *rule.Bans
		for _, b := range rule.BanList {
			name := strings.Join(rule.Fields, ",") + " " + strings.Join(b.Values(), "\t")
			s.bans[name] = append(s.bans[name], [2]float64{float64(b.Start.UnixMilli()), float64(b.End.UnixMilli())})
		}
	}
	return s
}

// banned returns for how many seconds any of the bans held: the total length of the steps between neighbouring ends of
// bans, of either side, that a ban covers.
func banned(bans [][2]float64) (sum float64) {
	var ends []float64
	for _, b := range bans {
		ends = append(ends, b[0], b[1])
	}
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		if slices.ContainsFunc(bans, func(b [2]float64) bool { return b[0] <= ends[i-1] && ends[i] <= b[1] }) {
			sum += ends[i] - ends[i-1]
		}
	}
	return sum / 1000
}

func mustDiff(t *testing.T, c replay.DiffConfig) *replay.Difference {
	t.Helper()
	d := must.Get(replay.Diff(t.Context(), c))(t)
	return d
}

// sameOfEvents has the events of the log of c, given one by one, differ as the log does.
func sameOfEvents(t *testing.T, c replay.DiffConfig, log string, want *replay.Difference) {
	t.Helper()
	format := must.Get(accesslog.ParseFormat(c.Format))(t)
	parser := must.Get(format.NewParser(accesslog.Options{}))(t)
	c.Files, c.Format = nil, ""
	c.Events = func(yield func(*match.Event) bool) {
		var ev match.Event
		for line := range strings.Lines(log) {
			if parser.Parse([]byte(strings.TrimSuffix(line, "\n")), &ev) && !yield(&ev) {
				return
			}
		}
	}
	got := mustDiff(t, c)
	got.Files = want.Files
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("of events: %s\nwant %s", a, b)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// TestDiffWithinBudget checks that a report mentions too little memory exactly if there was too little.
func TestDiffWithinBudget(t *testing.T) {
	file := mustRules(t, "version: 1\nlimits:\n  - {name: a, key: client, limit: 100 per 1h}\n")
	many, budget := 100_000, int64(4<<20)
	if testing.Short() {
		many, budget = many/8, budget/8
	}
	for _, keys := range []int{100, many} {
		events := func(yield func(*match.Event) bool) {
			var ev match.Event
			for i := range 2 * keys {
				ev.Reset()
				ev.Time = time.Unix(1_700_000_000, int64(i))
				ev.SetNamedString("client", strconv.Itoa(i%keys))
				if !yield(&ev) {
					return
				}
			}
		}
		d := mustDiff(t, replay.DiffConfig{Config: replay.Config{Events: events, Budget: budget, Cores: 1}, Old: file, New: file})
		if lacked := strings.Contains(strings.Join(d.Problems, "\n"), fmt.Sprint(budget, " bytes were too little")); lacked != (keys > 100) || d.Events != int64(2*keys) {
			t.Errorf("%d keys: %d events, %q", keys, d.Events, d.Problems)
		}
	}
}

// TestDiff compares two random rules files on a random log, and compares the reported difference for each user and each ban
// with separate replays of the two files.
func TestDiff(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	differ, bansDiffer := 0, 0
	for round := range rounds {
		resolution := pick(rnd, resolutions...)
		data, folded := rulesLog(rnd, 150, resolution/2+time.Millisecond)
		_, text := randomRules(rnd, resolution, round%2 == 0)
		_, other := randomRules(rnd, resolution, round%2 == 0)
		old, changed := mustRules(t, text), mustRules(t, other)
		c := replay.Config{
			Files: []string{writeFile(t, "log.csv", data)}, Format: rulesFormat, Key: "user",
			Resolution: resolution, Cores: 1 + rnd.IntN(4), Top: 1000,
		}
		d := mustDiff(t, replay.DiffConfig{Config: c, Old: old, New: changed})
		sameOfEvents(t, replay.DiffConfig{Config: c, Old: old, New: changed}, string(data), d)
		before, after := sideOf(t, c, old), sideOf(t, c, changed)
		want := make(map[string]*api.KeyDifference)
		var newly, allowed, oldRefused, newRefused int64
		for i, m := range ordered(folded, resolution) {
			k := want[m.values["user"]]
			if k == nil {
				k = new(api.KeyDifference)
				want[m.values["user"]] = k
			}
			was, is := before.decisions[i] == 'D', after.decisions[i] == 'D'
			add := func(when bool, to ...*int64) {
				for _, n := range to {
					if when {
						*n++
					}
				}
			}
			add(true, &k.Events)
			add(was, &k.OldRefused, &oldRefused)
			add(is, &k.NewRefused, &newRefused)
			add(is && !was, &k.NewlyRefused, &newly)
			add(was && !is, &k.NewlyAllowed, &allowed)
		}
		if d.NewlyRefused != newly || d.NewlyAllowed != allowed || d.Old.Refused != oldRefused || d.New.Refused != newRefused ||
			d.Old.Refused+d.NewlyRefused-d.NewlyAllowed != d.New.Refused || d.Old.Allowed+d.Old.Refused != d.Events {
			t.Errorf("%+v; want %d newly refused, %d newly allowed", d, newly, allowed)
		}
		delete(want, "")
		maps.DeleteFunc(want, func(_ string, k *api.KeyDifference) bool { return k.NewlyRefused+k.NewlyAllowed == 0 })
		for _, k := range d.Keys {
			w := want[k.Values()[0]]
			if w == nil || w.Events != k.Events || w.OldRefused != k.OldRefused || w.NewRefused != k.NewRefused || w.NewlyRefused != k.NewlyRefused || w.NewlyAllowed != k.NewlyAllowed {
				t.Errorf("%+v, want %+v", k, w)
			}
			differ++
		}
		if len(want) != len(d.Keys) {
			t.Errorf("%d keys, want %d", len(d.Keys), len(want))
		}
		bansDiffer += checkDiffBans(t, d, before, after)
		if t.Failed() {
			t.Fatalf("round %d, resolution %v\n%s\n%s\n%s", round, resolution, text, other, data)
		}
	}
	if differ == 0 || bansDiffer == 0 {
		t.Errorf("%d keys and %d bans differ: the test has no teeth", differ, bansDiffer)
	}
}

func checkDiffBans(t *testing.T, d *replay.Difference, before, after side) (differ int) {
	t.Helper()
	names := slices.Concat(slices.Collect(maps.Keys(before.bans)), slices.Collect(maps.Keys(after.bans)))
	slices.Sort(names)
	want := make(map[string][2]float64)
	for _, name := range slices.Compact(names) {
		if long := [2]float64{banned(before.bans[name]), banned(after.bans[name])}; long[0] != long[1] {
			want[name] = long
		}
	}
	for _, b := range d.Bans {
		name := strings.Join(b.Fields, ",") + " " + strings.Join(b.Values(), "\t")
		if w, ok := want[name]; !ok || math.Abs(w[0]-b.OldSeconds)+math.Abs(w[1]-b.NewSeconds) > 1e-6 {
			t.Errorf("%s: banned %v, then %v; want %v", name, b.OldSeconds, b.NewSeconds, w)
		}
	}
	if len(d.Bans) != len(want) || d.Old.Bans != before.started || d.New.Bans != after.started {
		t.Errorf("%d bans differ, of %d and %d; want %d, %d and %d", len(d.Bans), d.Old.Bans, d.New.Bans, len(want), before.started, after.started)
	}
	return len(want)
}

const diffRules = `
version: 1
limits:
  - {name: per-client, key: client, limit: 20 per 1m, ban: {after: 20 refusals in 5m, for: 10m, factor: 2}}
  - {name: per-object, key: object, limit: 50 per 5m, algorithm: gcra}
`

// TestDiffOfRealLogs compares a rules file with itself on every log: nothing differs. On logs of up to 50,000 lines it also
// compares it with another file: the sums are those of two replays.
func TestDiffOfRealLogs(t *testing.T) {
	old, changed := mustRules(t, diffRules), mustRules(t, strings.Replace(diffRules, "20 per 1m", "11 per 1m", 1))
	eachLog(t, func(t *testing.T, c replay.Config, want *oracleFile) {
		if testing.Short() && want.Lines > 10_000 {
			t.Skip("SKIP: in short mode the small logs are enough")
		}
		if want.Client == nil {
			c.Key = "object"
		}
		d := mustDiff(t, replay.DiffConfig{Config: c, Old: old, New: old})
		if !d.Empty() || len(d.Keys) > 0 || d.NewlyRefused+d.NewlyAllowed != 0 {
			t.Errorf("rules differ from themselves: %+v", d)
		}
		if want.Lines > 50_000 {
			return
		}
		d = mustDiff(t, replay.DiffConfig{Config: c, Old: old, New: changed})
		before, after := sideOf(t, c, old), sideOf(t, c, changed)
		var newly, allowed int64
		for i := range before.decisions {
			switch {
			case before.decisions[i] < after.decisions[i]:
				newly++
			case before.decisions[i] > after.decisions[i]:
				allowed++
			}
		}
		if d.NewlyRefused != newly || d.NewlyAllowed != allowed || d.Old.Refused+newly-allowed != d.New.Refused {
			t.Errorf("%d newly refused, %d newly allowed; want %d, %d", d.NewlyRefused, d.NewlyAllowed, newly, allowed)
		}
	})
}

// TestDiffProtects has a client that new rules refuse, one that they ban with its network, and one that they no longer
// refuse.
func TestDiffProtects(t *testing.T) {
	var log strings.Builder
	for sec := range 6 {
		log.WriteString(clfAt(int64(1_700_000_000+sec), "192.0.2.1", "/a") + clfAt(int64(1_700_000_000+sec), "2001:db8::7", "/a"))
		log.WriteString(clfAt(int64(1_700_000_000+sec), "198.51.100.1", "/b"))
	}
	old := mustRules(t, "version: 1\nlimits:\n  - {name: b, key: client, when: {path: /b}, limit: 2 per 1m}\n")
	changed := mustRules(t, `
version: 1
limits:
  - {name: a, key: client, when: {path: /a, client: 192.0.2.0/24}, limit: 3 per 1m}
bans:
  - {name: six, key: "user | client", when: {client: "2001:db8::/32"}, after: 5 hits in 1m, for: 1h}
`)
	for _, c := range []struct {
		protect    string
		keys, bans int
	}{
		{"192.0.2.1", 1, 0},
		{"192.0.2.0/28", 1, 0},
		{"2001:db8::7", 1, 1},
		{"2001:db8::8", 0, 1}, // shares its network
		{"2001:db8:1::/48", 0, 0},
		{"198.51.100.1", 0, 0}, // is only allowed more
		{"a.example", 0, 0},
	} {
		d := mustDiff(t, replay.DiffConfig{
			Config: replay.Config{Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Format: "clf"},
			Old:    old, New: changed, Protect: []string{c.protect},
		})
		if len(d.Hurt) != c.keys || len(d.HurtBans) != c.bans || d.NewlyRefused != 4 || d.NewlyAllowed != 4 {
			t.Errorf("%s: %d keys and %d bans hurt, want %d and %d: %+v", c.protect, len(d.Hurt), len(d.HurtBans), c.keys, c.bans, d)
		}
	}
}
