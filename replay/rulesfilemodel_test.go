package replay_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/replay"
	"github.com/lately-go/lately/rules"
)

// A said is the decision about one event under a rules file, with the outcome of each limit or ban that judged it.
type said struct {
	allowed bool
	rules   []ruleSaid
}

type ruleSaid struct {
	rule             int
	refused, started bool
}

// A modelRule is a limit or ban of a rules file as the model has it.
type modelRule struct {
	name         string
	key          []string
	method, path string // of the events that the rule is about; "" is any
	limits       []ratelimit.Limit
	countRefused bool
	shadow       bool
	ban          *ratelimit.Ban
}

// about reports whether the rule judges m, and gives m's key.
func (r *modelRule) about(m moment) (key string, ok bool) {
	if r.method != "" && m.values["method"] != r.method || r.path != "" && m.values["path"] != r.path {
		return "", false
	}
	return keyOf(m, r.key)
}

// keyOf returns the values of the fields with tabs between them.
func keyOf(m moment, fields []string) (key string, ok bool) {
	var parts []string
	for _, f := range fields {
		v := m.values[f]
		if v == "" {
			return "", false
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, "\t"), true
}

// A modelKey is everything that a rule recorded for a key.
type modelKey struct {
	charged  []int64 // times charged to the limits
	strikes  []int64 // hits or refusals since the last ban began
	newest   int64
	judged   bool
	until    int64
	bans     int
	isBanned bool // until has been set
}

// modelJudge judges moments by the words of the design: active bans come first and stop all else; every other event is a
// hit for the bans; all limits are judged, and each refusal counts toward its own ban; a refused event charges no limit
// unless its rule counts refused events; shadow rules refuse nothing and charge only what is allowed.
func modelJudge(rs []modelRule, moments []moment) []said {
	keys := make([]map[string]*modelKey, len(rs))
	for i := range keys {
		keys[i] = make(map[string]*modelKey)
	}
	out := make([]said, len(moments))
	for i, m := range moments {
		out[i].allowed = true
		if m.values["allow"] != "" {
			continue
		}
		var who []*modelKey
		for r := range rs {
			key, ok := rs[r].about(m)
			if !ok {
				continue
			}
			if keys[r][key] == nil {
				keys[r][key] = &modelKey{}
			}
			who = append(who, keys[r][key])
			out[i].rules = append(out[i].rules, ruleSaid{rule: r})
		}
		judgeMoment(rs, m.t, who, &out[i])
	}
	return out
}

func judgeMoment(rs []modelRule, t int64, who []*modelKey, s *said) {
	for _, k := range who {
		if k.judged {
			t = max(t, k.newest)
		}
	}
	holds, anyHolds := make([]bool, len(who)), false
	for i, k := range who {
		k.newest, k.judged = t, true
		holds[i] = k.isBanned && t < k.until
		anyHolds = anyHolds || holds[i] && !rs[s.rules[i].rule].shadow
	}
	over := make([]bool, len(who)) // a limit refuses, and no ban of the rule
	for i, k := range who {
		r, said := &rs[s.rules[i].rule], &s.rules[i]
		if !anyHolds && !holds[i] {
			for _, l := range r.limits {
				over[i] = over[i] || uint64(within(k.charged, t, l.Span)) >= l.N
			}
			if r.ban != nil && (r.ban.Of == ratelimit.Hits || over[i]) {
				k.strikes = append(k.strikes, t)
				if uint64(within(k.strikes, t, r.ban.Span)) > r.ban.After {
					k.startBan(t, r.ban)
					said.started = true
				}
			}
		}
		said.refused = holds[i] || over[i] || said.started
		s.allowed = s.allowed && (r.shadow || !said.refused)
	}
	for i, k := range who {
		r, said := &rs[s.rules[i].rule], &s.rules[i]
		if anyHolds || holds[i] || said.started || r.shadow && !s.allowed {
			continue
		}
		if r.countRefused || s.allowed && !said.refused {
			k.charged = append(k.charged, t)
		}
	}
}

// startBan bans the key from t on, longer each time.
func (k *modelKey) startBan(t int64, b *ratelimit.Ban) {
	if k.isBanned && t-k.until > (24*time.Hour).Milliseconds() {
		k.bans = 0
	}
	long := float64(b.For.Milliseconds()) * math.Pow(max(b.Factor, 1), float64(k.bans))
	if b.Max != 0 {
		long = min(long, float64(b.Max.Milliseconds()))
	}
	k.until, k.isBanned, k.strikes = t+int64(long), true, nil
	k.bans++
}

// limiterJudge gives the events one by one, in order, to a Limiter like that of a server.
func limiterJudge(t *testing.T, file *rules.File, resolution time.Duration, moments []moment) []said {
	t.Helper()
	limiter := must.Get(ratelimit.NewLimiter(file.Limits, ratelimit.Config{Resolution: resolution, Budget: -1, JitterSeed: 1}))(t)
	out := make([]said, len(moments))
	for i, m := range moments {
		d, outcomes := limiter.Internal().JudgeAt(time.UnixMilli(m.t), &batch.Query{Event: eventOf(m), Cost: 1}, nil)
		out[i].allowed = d.Allowed
		for _, o := range outcomes {
			out[i].rules = append(out[i].rules, ruleSaid{o.Rule, o.Refused, o.Started})
		}
	}
	return out
}

func eventOf(m moment) *match.Event {
	var ev match.Event
	for name, v := range m.values {
		if name != "allow" { // which is the model's own
			ev.SetNamedString(name, v)
		}
	}
	return &ev
}

// checkRulesFile compares a report with the decisions about the events. key returns the key of a moment for the number of a
// rule; the report has a number of the busiest keys.
func checkRulesFile(t *testing.T, r *replay.Report, decisions []byte, file *rules.File, moments []moment, want []said, key func(int, moment) string, top int) {
	t.Helper()
	outcomes := make([]byte, len(want))
	for i := range want {
		outcomes[i] = letter(want[i].allowed)
	}
	if !bytes.Equal(decisions, outcomes) {
		t.Errorf("decisions\n%s, want\n%s", decisions, outcomes)
	}
	if no := int64(bytes.Count(outcomes, []byte("D"))); r.All == nil || *r.All != (replay.Together{Allowed: int64(len(want)) - no, Refused: no, SHA256: hexDigest(outcomes)}) {
		t.Errorf("all rules: %+v, want %d of %d refused", r.All, no, len(want))
	}
	for n := range file.Limits.Rules() {
		checkRuleReport(t, r, n, file.Limits.Rules()[n], moments, want, key, top)
	}
}

func checkRuleReport(t *testing.T, r *replay.Report, n int, rule *ratelimit.Rule, moments []moment, want []said, key func(int, moment) string, top int) {
	t.Helper()
	var decided []byte
	var starts []hit
	keys, banned := make(map[string]bool), make(map[string]bool)
	busy := make(map[string]*[2]int64)
	for i := range want {
		at := slices.IndexFunc(want[i].rules, func(s ruleSaid) bool { return s.rule == n })
		if at < 0 {
			continue
		}
		s, k := want[i].rules[at], key(n, moments[i])
		decided = append(decided, letter(!s.refused))
		if s.refused {
			keys[k] = true
		}
		if s.started {
			starts = append(starts, hit{moments[i].t, k})
			banned[k] = true
		}
		if busy[k] == nil {
			busy[k] = new([2]int64)
		}
		busy[k][bytes.IndexByte([]byte("AD"), letter(!s.refused))]++
	}
	got := r.Rules[n]
	no := int64(bytes.Count(decided, []byte("D")))
	if *got.Allowed != int64(len(decided))-no || *got.Refused != no || got.SHA256 != hexDigest(decided) || *got.KeysRefused != int64(len(keys)) {
		t.Errorf("rule %s: %d allowed, %d refused of %d keys, digest %s; want %d of %d, %d keys",
			rule.Name, *got.Allowed, *got.Refused, *got.KeysRefused, got.SHA256, no, len(decided), len(keys))
	}
	if shadow := got.Mode == "shadow"; shadow != rule.Shadow {
		t.Errorf("rule %s: mode %q, want shadow %v", rule.Name, got.Mode, rule.Shadow)
	}
	if rule.Ban != nil && (*got.Bans != int64(len(starts)) || *got.BannedKeys != int64(len(banned)) || got.StartsSHA256 != hitDigest(starts, false)) {
		t.Errorf("rule %s: %d bans of %d keys, digest %s; want %v", rule.Name, *got.Bans, *got.BannedKeys, got.StartsSHA256, starts)
	}
	if len(got.Busiest) != min(len(busy), top) {
		t.Errorf("rule %s: busiest %v, want %d keys", rule.Name, got.Busiest, min(len(busy), top))
	}
	least := int64(math.MaxInt64)
	for _, b := range got.Busiest {
		k := strings.Join(b.Values(), "\t")
		if w := busy[k]; w == nil || *w != [2]int64{b.Allowed, b.Refused} || b.Allowed+b.Refused > least {
			t.Errorf("rule %s: busiest %+v, want %v, largest first", rule.Name, b, w)
		}
		least = b.Allowed + b.Refused
		delete(busy, k)
	}
	for k, w := range busy {
		if w[0]+w[1] > least {
			t.Errorf("rule %s: %q with %v is not among the busiest", rule.Name, k, w)
		}
	}
}
