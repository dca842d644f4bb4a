package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// How many of each a rule's report has.
const (
	maxBans    = 1000
	maxFirst   = 100 // first edges of a hot rule
	maxRefused = 10  // keys in the plain report
)

// reportLimit reports a limit or ban.
func (e *events) reportLimit(j *judging, number int) RuleReport {
	rule := &j.rules[number]
	counts, refusals := rule.judged, rule.refused
	rep := RuleReport{
		Name: rule.Name, Kind: Limit, Fields: keyFields(rule.Key), Algorithm: rule.Algorithm.String(),
		Allowed: new(int64), Refused: new(int64), KeysRefused: new(int64),
		Timeline: &rule.bars, SHA256: hex.EncodeToString(rule.decisions.Sum(nil)), Busiest: []BusyKey{},
	}
	for id, n := range refusals {
		*rep.Refused += n
		if id > 0 { // else they have no key
			*rep.KeysRefused += min(n, 1)
		}
		*rep.Allowed += counts[id] - n
	}
	rep.describe(rule.Rule)
	j.reportLacking(&rep, number)
	for _, id := range rule.keys.largest(e.run.Top, counts) {
		rep.Busiest = append(rep.Busiest, BusyKey{rule.key(id), counts[id] - refusals[id], refusals[id]})
	}
	bans := make(map[uint32]int64) // of each key
	if rule.Ban != nil {
		starts := rule.banStarts()
		for _, s := range starts {
			bans[s.key]++
		}
		rep.BannedKeys = new(int64(len(bans)))
		e.reportBans(&rep, rule, starts)
	}
	for _, id := range rule.keys.largest(maxRefused, refusals) {
		rep.mostRefused = append(rep.mostRefused, refusedKey{rule.key(id), refusals[id], bans[id]})
	}
	return rep
}

// reportLacking adds how many events lack a field of the key.
func (j *judging) reportLacking(rep *RuleReport, number int) {
	var lacking, lackingRefused uint64
	for _, own := range j.judges {
		if own != nil {
			s := own.limiter.Stats().Rules[number]
			lacking, lackingRefused = lacking+s.Lacking+own.lacking, lackingRefused+s.LackingRefused
		}
	}
	rep.Lacking = int64(lacking)
	rep.LackingSentence = sentence.Lacking(j.limits.Rules()[number], lacking, lackingRefused, uint64(*rep.Allowed+*rep.Refused)+lacking-lackingRefused)
}

// describe adds what the rule counts, and how.
func (rep *RuleReport) describe(rule *ratelimit.Rule) {
	if rule.Shadow {
		rep.Mode = "shadow"
	}
	if len(rule.Limits) == 0 {
		rep.Kind, rep.Algorithm = Ban, "exact"
		rep.LimitJSON = LimitJSON{N: rule.Ban.After, SpanSeconds: rule.Ban.Span.Seconds()}
		return
	}
	rep.LimitJSON, rep.Adapts = limitJSON(rule.Limits[0]), rule.Adapt != nil
	if rule.Zone != nil {
		rep.Zone = rule.Zone.String()
	}
	if len(rule.Limits) > 1 {
		for _, l := range rule.Limits {
			rep.Limits = append(rep.Limits, limitJSON(l))
		}
	}
}

// reportBans adds the bans of a rule.
func (e *events) reportBans(rep *RuleReport, rule *ruleOutcomes, starts []keyEvent) {
	rep.Bans = new(int64(len(starts)))
	rep.BanSeconds, rep.BanList = (*ban.Policy)(rule.Ban).Duration(0).Seconds(), []BanReport{}
	for _, s := range starts[:min(len(starts), maxBans)] {
		from := epoch(s.at)
		rep.BanList = append(rep.BanList, BanReport{rule.key(s.key), from, Epoch{from.Add(s.long)}})
	}
	rep.BansLeftOut = int64(len(starts) - len(rep.BanList))
	rep.StartsSHA256 = e.digestEvents(starts, rule.Key, rule.keys)
}

// key returns the key of that number.
func (r *ruleOutcomes) key(id uint32) api.Key { return r.keys.keyOf(id) }

// reportHot reports a hot rule.
func (e *events) reportHot(j *judging, number int) RuleReport {
	rule, hot := &j.ruleset.hot[number], &j.hot[number]
	first := slices.Concat(hot.first...)
	slices.SortFunc(first, func(a, b keyEvent) int { return cmp.Compare(a.event, b.event) })
	algorithm := "sliding" // in slots
	if rule.Exact || rule.Threshold <= limit.SlidingExact {
		algorithm = "exact"
	}
	rep := RuleReport{
		Name: rule.Name, Kind: Hot, Fields: keyFields(rule.Key), Algorithm: algorithm,
		LimitJSON: LimitJSON{N: rule.Threshold, SpanSeconds: rule.Span.Seconds()},
		HotKeys:   new(int64(len(first))), FirstHot: []Moment{}, SHA256: e.digestEvents(first, rule.Key, hot.keys),
	}
	for _, f := range first[:min(len(first), maxFirst)] {
		key := hot.keys.keyOf(f.key)
		rep.FirstHot = append(rep.FirstHot, Moment{epoch(f.at), key})
	}
	return rep
}

// digestEvents returns the SHA-256 of "<t>\t<key>\n" for each event, in hex. t is
// epoch seconds; the values of a key have tabs between them, see textKeys.
func (e *events) digestEvents(events []keyEvent, key match.Key, keys *keyColumn) string {
	h := sha256.New()
	text := e.run.textKeys()
	var line []byte
	for _, ev := range events {
		line = append(epoch(ev.at).append(line[:0]), '\t')
		joined := strings.Join(keyvalue.All(key, keys.texts[ev.key]), "\t")
		if text {
			line = append(line, joined...)
		} else {
			for i := range len(joined) {
				line = utf8.AppendRune(line, rune(joined[i]))
			}
		}
		h.Write(append(line, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}
