package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
)

// rulesClients is clients as a log may write them, and the key that each is.
var rulesClients = [][2]string{
	{"192.0.2.1", "192.0.2.1"},
	{"::ffff:192.0.2.1", "192.0.2.1"},
	{"192.0.2.2", "192.0.2.2"},
	{"2001:db8:0:1::5", "2001:db8:0:1::/64"},
	{"2001:0db8:0:1:0:0:0:9", "2001:db8:0:1::/64"},
	{"2001:db8:0:2::5", "2001:db8:0:2::/64"},
	{"host\xff.example", "host\xff.example"},
	{"198.51.100.7", "198.51.100.7"}, // in the allow list
}

// rulesPaths is paths as sent, and as rules see them.
var rulesPaths = [][2]string{{"/login", "/login"}, {"//login", "/login"}, {"/%61", "/a"}, {"/a", "/a"}, {"/b/../a", "/a"}, {"/c", "/c"}}

const rulesFormat = "csv:time=1@ms,client=2,method=3,path=4,user=5"

// rulesLog makes a log and returns its events as the rules see them.
func rulesLog(rnd *rand.Rand, lines int, step time.Duration) (data []byte, folded []record) {
	at := time.UnixMilli(1_700_000_000_123)
	for range lines {
		at = at.Add(time.Duration(rnd.Int64N(int64(step)*10)) - 3*step).Truncate(time.Millisecond)
		client := rulesClients[rnd.IntN(1+rnd.IntN(len(rulesClients)))]
		path, method, user := rulesPaths[rnd.IntN(len(rulesPaths))], pick(rnd, "GET", "POST"), pick(rnd, "", "u1", "u2")
		data = fmt.Appendf(data, "%d,%s,%s,%s,%s\n", at.UnixMilli(), client[0], method, path[0], user)
		values := map[string]string{"client": client[1], "method": method, "path": path[1], "user": user}
		if client[0] == "198.51.100.7" {
			values["allow"] = "yes"
		}
		folded = append(folded, record{at, values})
	}
	return data, folded
}

// randomRules makes up rules that get in each other's way, as the model has
// them and as a rules file.
func randomRules(rnd *rand.Rand, resolution time.Duration, spread bool) (model []modelRule, text string) {
	keys := [][]string{{"client"}, {"path"}, {"client", "path"}, {"user", "client"}}
	key := keys[rnd.IntN(len(keys))]
	span := func() time.Duration { return resolution * pick[time.Duration](rnd, 1, 3, 10, 60) }
	var limits, bans strings.Builder
	for i := range 1 + rnd.IntN(5) {
		if !spread {
			key = keys[rnd.IntN(len(keys))]
		}
		r := modelRule{name: fmt.Sprint("rule-", i), key: key, shadow: rnd.IntN(4) == 0}
		if rnd.IntN(4) == 0 {
			r.method = "POST"
		}
		if rnd.IntN(4) == 0 {
			r.path = "/login"
		}
		if rnd.IntN(3) > 0 {
			r.limits = append(r.limits, ratelimit.Limit{N: uint64(rnd.IntN(6)), Span: span()})
			if other := span(); rnd.IntN(2) == 0 && other != r.limits[0].Span {
				r.limits = append(r.limits, ratelimit.Limit{N: uint64(rnd.IntN(9)), Span: other})
			}
			r.countRefused = rnd.IntN(3) == 0
		}
		if len(r.limits) == 0 || rnd.IntN(2) == 0 {
			r.ban = &ratelimit.Ban{After: uint64(rnd.IntN(6)), Span: span(), For: span() + pick[time.Duration](rnd, 0, 7*time.Millisecond)}
			if len(r.limits) > 0 && rnd.IntN(2) == 0 {
				r.ban.Of = ratelimit.Refusals
			}
			if rnd.IntN(3) == 0 {
				r.ban.Factor, r.ban.Max = 2, 5*r.ban.For
			}
		}
		model = append(model, r)
	}
	// In the file, and so in the report, bans come after limits.
	var sorted []modelRule
	for _, r := range model {
		if len(r.limits) > 0 {
			sorted = append(sorted, r)
			limits.WriteString(r.yaml())
		}
	}
	for _, r := range model {
		if len(r.limits) == 0 {
			sorted = append(sorted, r)
			bans.WriteString(r.yaml())
		}
	}
	text = "version: 1\nallow: [198.51.100.0/24]\n"
	if limits.Len() > 0 {
		text += "limits:\n" + limits.String()
	}
	if bans.Len() > 0 {
		text += "bans:\n" + bans.String()
	}
	return sorted, text
}

// yaml writes the rule as a rules file has it.
func (r *modelRule) yaml() string {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	f("  - name: %s\n    key: [%s]\n", r.name, strings.Join(r.key, ", "))
	if r.shadow {
		f("    mode: shadow\n")
	}
	if r.method+r.path != "" {
		f("    when:\n")
		if r.method != "" {
			f("      method: %s\n", r.method)
		}
		if r.path != "" {
			f("      path: %s\n", r.path)
		}
	}
	indent := "    "
	if len(r.limits) > 0 {
		f("    algorithm: exact\n    count_refused: %v\n    limit:\n", r.countRefused)
		for _, l := range r.limits {
			f("      - %d per %s\n", l.N, rulevalue.FormatDuration(l.Span))
		}
		indent += "  "
	}
	if r.ban == nil {
		return b.String()
	}
	if len(r.limits) > 0 {
		f("    ban:\n")
	}
	f("%safter: %d %s in %s\n%sfor: %s\n", indent, r.ban.After, r.ban.Of, rulevalue.FormatDuration(r.ban.Span), indent, rulevalue.FormatDuration(r.ban.For))
	if r.ban.Factor > 0 {
		f("%sfactor: %v\n%smax: %s\n", indent, r.ban.Factor, indent, rulevalue.FormatDuration(r.ban.Max))
	}
	return b.String()
}

// TestRulesFile judges random logs under random rules files, on several
// cores, and holds the report to the model and to a Limiter on one core.
func TestRulesFile(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 500
	if testing.Short() {
		rounds = 60
	}
	refused, banned, spreads := 0, int64(0), 0
	for round := range rounds {
		resolution := pick(rnd, resolutions...)
		data, folded := rulesLog(rnd, 150, resolution/2+time.Millisecond)
		model, text := randomRules(rnd, resolution, round%2 == 0)
		file := mustRules(t, text)
		c := replay.Config{
			Files: []string{writeFile(t, "log.csv", data)}, Format: rulesFormat, Rules: file,
			Resolution: resolution, Cores: 1 + rnd.IntN(4), Top: 100,
		}
		r, decisions := mustDecide(t, c)
		moments := ordered(folded, resolution)
		want := modelJudge(model, moments)
		key := func(rule int, m moment) string {
			k, ok := keyOf(m, model[rule].key)
			if !ok {
				t.Errorf("rule %d judged an event without its key", rule)
			}
			return k
		}
		checkRulesFile(t, r, decisions, file, moments, want, key, 100)
		for i, s := range limiterJudge(t, file, resolution, moments) {
			if s.allowed != want[i].allowed {
				t.Errorf("event %d: Limiter: %v, model: %v", i, s.allowed, want[i].allowed)
			}
		}
		if t.Failed() {
			t.Fatalf("round %d, resolution %v, cores %d\n%s\n%s", round, resolution, c.Cores, text, data)
		}
		refused += bytes.Count(decisions, []byte("D"))
		for i := range model {
			if model[i].ban != nil {
				banned += *r.Rules[i].Bans
			}
		}
		if c.Cores > 1 && round%2 == 0 {
			spreads++
		}
	}
	if refused == 0 || banned == 0 || spreads == 0 {
		t.Errorf("%d refused, %d bans, %d on several cores: the test has no teeth", refused, banned, spreads)
	}
}

// TestHotRules holds the hot rules of a rules file, with conditions, composite
// keys and folding, to the reference.
func TestHotRules(t *testing.T) {
	rnd := randtest.New(t)
	data, folded := rulesLog(rnd, 800, 300*time.Millisecond)
	file := mustRules(t, `
version: 1
hot:
  - {name: path, key: path, threshold: 9 per 5s}
  - {name: who-where, key: [client, path], threshold: 4 per 20s, hold: 1m}
  - {name: posts, key: client, when: {method: POST}, threshold: 3 per 4s}
`)
	r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log.csv", data)}, Format: rulesFormat, Rules: file, Resolution: time.Second, Cores: 3})
	moments := ordered(folded, time.Second)
	for i, c := range []struct {
		rule modelRule
		n    uint64
		span time.Duration
	}{
		{modelRule{key: []string{"path"}}, 9, 5 * time.Second},
		{modelRule{key: []string{"client", "path"}}, 4, 20 * time.Second},
		{modelRule{key: []string{"client"}, method: "POST"}, 3, 4 * time.Second},
	} {
		var hits []hit
		for _, m := range moments {
			if key, ok := c.rule.about(m); ok {
				hits = append(hits, hit{m.t, key})
			}
		}
		want := refHot(hits, c.n, c.span)
		if len(want) == 0 {
			t.Errorf("rule %d: nothing ran hot: the test has no teeth", i)
		}
		checkFirst(t, &r.Rules[i], want, false)
	}
}

// TestRulesFileSliding compares realistic rules files, and one with every algorithm, with a Limiter on one core, for a
// generated log that contains floods. One of them follows the traffic of all keys, so its rules must not be spread over
// cores.
func TestRulesFileSliding(t *testing.T) {
	rnd := randtest.New(t)
	log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 20_000, Duration: 3 * time.Hour})
	path := writeFile(t, "access.log", log)
	moments := ordered(readLog(t, "clf", 0, log).records, time.Second)
	for name, text := range map[string]string{
		"spread": `
version: 1
limits:
  - {name: minute, key: client, limit: [30 per 10s, 100 per 5m], ban: {after: 50 refusals in 1m, for: 10m, factor: 2, max: 1h}}
  - {name: try, key: client, limit: 80 per 1m, mode: shadow, when: {status: 2xx}}
bans:
  - {name: flood, key: client, after: 60 hits in 2m, for: 30m}
`,
		"joined": `
version: 1
client: {ipv4: 24}
limits:
  - {name: minute, key: client, limit: 40 per 1m}
  - {name: path, key: path, limit: 70 per 1m, count_refused: true}
  - {name: both, key: [client, path], limit: 100 per 1h, mode: shadow}
bans:
  - {name: login, key: client, when: {method: POST, path: "/login"}, after: 100 hits in 5m, for: 1h}
`,
		"algorithms": `
version: 1
limits:
  - {name: two-bucket, key: client, limit: 25 per 20s, algorithm: two-bucket, count_refused: true, ban: {after: 30 refusals in 1m, for: [1m, 5m, 1h], jitter: 0.5}}
  - {name: gcra, key: client, limit: 60 per 1m burst 15, algorithm: gcra, count_refused: true}
  - {name: token-bucket, key: client, limit: [5 per 1s, 60 per 1m burst 40], algorithm: token-bucket, count_refused: true}
  - {name: leaky-bucket, key: client, limit: 1 per 2s burst 10, algorithm: leaky-bucket, mode: shadow}
  - {name: fixed, key: client, limit: 50 per 90s, algorithm: fixed, count_refused: true}
  - {name: calendar, key: client, limit: [60 per hour, 300 per month], algorithm: calendar, zone: Asia/Kathmandu}
  - {name: in-flight, key: client, limit: 10 at once for 1m, algorithm: in-flight}
bans:
  - {name: flood, key: client, after: 90 hits in 2m, for: 5m, factor: 3, jitter: 0.3, extend: true, remember: 1h}
`,
		"traffic": `
version: 1
limits:
  - {name: steps, key: client, limit: 40 per 1m, adapt: {steps: [40 below 1 per 1s, 25 below 3 per 1s], above: 10, span: 10s}}
  - {name: smooth, key: client, limit: 40 per 1m, algorithm: fixed, adapt: {steps: 50 below 3 per 1s, above: 9, smooth: 30s}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			file := mustRules(t, text)
			r, decisions := mustDecide(t, replay.Config{Files: []string{path}, Rules: file, Cores: 4, Top: 1 << 20})
			want := limiterJudge(t, file, 0, moments)
			key := func(rule int, m moment) string {
				ev := eventOf(m)
				k, _ := file.Limits.Rules()[rule].Key.Append(nil, ev)
				var parts []string
				for p := range file.Limits.Rules()[rule].Key.Parts(k) {
					parts = append(parts, string(p))
				}
				return strings.Join(parts, "\t")
			}
			checkRulesFile(t, r, decisions, file, moments, want, key, 1<<20)
			for _, rule := range r.Rules {
				if rule.Mode == "" && *rule.Refused == 0 {
					t.Errorf("rule %s refused nothing: the test has no teeth", rule.Name)
				}
			}
		})
	}
}
