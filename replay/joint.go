package replay

import (
	"context"
	"hash/maphash"
	"strings"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// judgeRules judges a rules file: limits and bans together, in event order, and then
// hot rules, each on its own, over the events that were allowed. If all limits and
// bans count by one key and none follows the traffic, keys are spread over the cores;
// otherwise one core sees all events.
func (e *events) judgeRules(ctx context.Context, report *Report) error {
	file := e.run.Rules
	parts, partOf := e.partition(file.Limits)
	at := e.limitTimes()
	hotAt := make([][]int64, file.Hot.Len())
	for i := range hotAt {
		hotAt[i] = e.judgingTimes(file.Hot.Rule(i).Span+file.Hot.Rule(i).Hold, false)
	}
	e.run.Progress.Judging.Store(int64(parts + file.Hot.Len()))
	outcomes := make([]byte, len(e.times))
	for i := range outcomes {
		outcomes[i] = 'A'
	}
	tallies := make([]tally, parts)
	hot := make([]RuleReport, file.Hot.Len())
	hotErrs := make([]error, file.Hot.Len())
	e.run.parallel(parts, func(i int) {
		defer e.run.Progress.Judged.Add(1)
		tallies[i] = e.judgeJoint(ctx, file.Limits, i, partOf, at, outcomes)
	})
	e.run.parallel(len(hot), func(i int) {
		defer e.run.Progress.Judged.Add(1)
		hot[i], hotErrs[i] = e.detectRule(ctx, file.Hot.Rule(i), hotAt[i], outcomes)
	})
	errs := append(hotErrs, ctx.Err())
	for _, t := range tallies {
		errs = append(errs, t.err)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	ranges, err := e.ruleRanges(ctx)
	if err != nil {
		return err
	}
	lacking, hotLacking := e.checkRules()
	for i := range file.Limits.Len() {
		if !lacking[i] {
			rep := e.reportRule(file.Limits.Rule(i), i, tallies)
			rep.RefusedRange = ranges[i]
			report.Rules = append(report.Rules, rep)
		}
	}
	for i := range hot {
		if !hotLacking[i] {
			report.Rules = append(report.Rules, hot[i])
		}
	}
	if e.run.Decisions != nil {
		e.run.writeDecisions(outcomes, report)
	}
	return nil
}

// partition returns over how many cores the events of a set can be spread, and
// the part of each event; nil when all events are one part. A rule that follows
// the traffic looks at all keys together.
func (e *events) partition(set *ratelimit.Set) (parts int, partOf []uint8) {
	parts = min(e.run.Cores, 256)
	for i := range set.Len() {
		if r := set.Rule(i); r.Adapt != nil || !r.Key.Equal(set.Rule(0).Key) {
			parts = 1
		}
	}
	if parts == 1 || set.Len() == 0 {
		return 1, nil
	}
	partOf = make([]uint8, len(e.times))
	seed := maphash.MakeSeed() // the answers do not depend on it
	key := set.Rule(0).Key
	e.run.parallel(parts, func(p int) {
		ev := e.newEventReader()
		var buf []byte
		for i := p * len(e.times) / parts; i < (p+1)*len(e.times)/parts; i++ {
			var ok bool
			if buf, ok = key.Append(buf[:0], ev.event(i)); ok {
				partOf[i] = uint8(maphash.Bytes(seed, buf) % uint64(parts))
			}
		}
	})
	return parts, partOf
}

// eventReader makes events of records again.
type eventReader struct {
	*events
	ev     match.Event
	fields []match.Field // numbers of well-known fields
	named  []bool        // the others
}

func (e *events) newEventReader() *eventReader {
	r := &eventReader{events: e}
	for _, name := range e.run.fields {
		f, known := match.FieldNamed(name)
		r.fields, r.named = append(r.fields, f), append(r.named, !known)
	}
	return r
}

// event returns event i, until the next call.
func (r *eventReader) event(i int) *match.Event {
	r.ev.Reset()
	for c, col := range r.cols {
		id := col[i]
		switch {
		case id == 0:
		case c == len(r.run.fields):
			unpack(&r.ev, r.run.packed, r.values[c][id])
		case r.named[c]:
			r.ev.SetNamedString(r.run.fields[c], r.values[c][id])
		default:
			r.ev.SetString(r.fields[c], r.values[c][id])
		}
	}
	return &r.ev
}

// judgeJoint judges the events of one part under the whole set.
func (e *events) judgeJoint(ctx context.Context, set *ratelimit.Set, part int, partOf []uint8, at []int64, decisions []byte) tally {
	t := tally{rules: make([]ruleTally, set.Len())}
	for i := range t.rules {
		t.rules[i] = ruleTally{keys: make(map[string]*keyTally), busiest: make(map[uint32]*BusyKey)}
	}
	limiter, err := e.run.limiter(set)
	if err != nil {
		t.err = err
		return t
	}
	topCol := e.cols[e.run.column(e.run.Key)]
	isTop := make(map[uint32]bool)
	for _, id := range e.ranks[e.run.column(e.run.Key)].ids {
		isTop[id] = true
	}
	reader := e.newEventReader()
	var outcomes []ratelimit.Outcome
	var key []byte
	for i := range e.times {
		if i%checkEvery == 0 && ctx.Err() != nil {
			break
		}
		if partOf != nil && int(partOf[i]) != part {
			continue
		}
		ev := reader.event(i)
		var d ratelimit.Decision
		now := e.run.clock.time(at[i])
		d, outcomes = limiter.Judge(now, ev, 1, outcomes[:0])
		if !d.Allowed {
			decisions[i] = 'D'
		}
		for _, o := range outcomes {
			rt := &t.rules[o.Rule]
			key, _ = set.Rule(o.Rule).Key.Append(key[:0], ev)
			rt.add(i, now, key, d.Allowed, o, set.Rule(o.Rule).Shadow)
			if isTop[topCol[i]] {
				rt.addBusy(topCol[i], d.Allowed)
			}
		}
	}
	return t
}

// reportRule makes the report of one limit or ban of a rules file.
func (e *events) reportRule(rule *ratelimit.Rule, number int, tallies []tally) RuleReport {
	all := merge(number, tallies)
	rep := RuleReport{
		Name: rule.Name, Kind: Limit, Key: keyName(rule.Key), Algorithm: rule.Algorithm.String(),
		Allowed: pointer(all.allowed), Refused: pointer(all.refused), RefusedByRule: pointer(all.byRule),
		Busiest: []BusyKey{},
	}
	rep.limits(rule)
	if rule.Shadow {
		rep.Mode, rep.WouldRefuse, rep.RefusedByRule = "shadow", pointer(all.wouldRefuse), nil
	}
	var keysRefused, bannedKeys int64
	var refused []BannedKey
	for key, k := range all.keys {
		if k.refused > 0 {
			keysRefused++
		}
		if k.bans > 0 {
			bannedKeys++
		}
		refused = append(refused, BannedKey{parts(rule.Key, key), k.refused, k.bans})
	}
	rep.KeysRefused, rep.MostRefused = pointer(keysRefused), firstRefused(refused)
	if rule.Ban != nil {
		rep.BanSeconds, rep.BanList = rule.Ban.Duration(0).Seconds(), []BanReport{}
		for _, s := range all.starts[:min(len(all.starts), maxBans)] {
			rep.BanList = append(rep.BanList, e.banReport(s.event, parts(rule.Key, s.key), s.long))
		}
		rep.BansLeftOut = int64(len(all.starts) - len(rep.BanList))
		rep.Bans, rep.BannedKeys = pointer(int64(len(all.starts))), pointer(bannedKeys)
		rep.StartsSHA256 = e.run.digestMoments(func(yield func(int64, string) bool) {
			for _, s := range all.starts {
				if !yield(e.times[s.event], joined(parts(rule.Key, s.key))) {
					return
				}
			}
		})
	}
	decisions := make([]byte, len(all.fates))
	for i, f := range all.fates {
		decisions[i] = f.byte
	}
	rep.SHA256 = digest(decisions)
	col := e.run.column(e.run.Key)
	for _, id := range e.ranks[col].ids {
		if b := all.busiest[id]; b != nil {
			rep.Busiest = append(rep.Busiest, BusyKey{Keyed{Key{e.values[col][id]}}, b.Allowed, b.Refused})
		}
	}
	return rep
}

// limits says what rule counts, and how.
func (rep *RuleReport) limits(rule *ratelimit.Rule) {
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

// detectRule runs one hot rule over all events that were allowed.
func (e *events) detectRule(ctx context.Context, rule *hotkey.Rule, at []int64, outcomes []byte) (RuleReport, error) {
	rep := RuleReport{
		Name: rule.Name, Kind: Hot, Key: keyName(rule.Key), Algorithm: "exact",
		LimitJSON: LimitJSON{N: rule.Threshold, SpanSeconds: rule.Span.Seconds()}, FirstHot: []Moment{},
	}
	set, err := hotkey.NewSet(*rule)
	if err != nil {
		return rep, err
	}
	detector, err := hotkey.NewDetector(set, hotkey.DetectorConfig{Shards: 1})
	if err != nil {
		return rep, err
	}
	type first struct {
		tick int64
		key  Key
	}
	var firsts []first
	reader := e.newEventReader()
	var edges []hotkey.Edge
	for i := range e.times {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return rep, ctx.Err()
		}
		if outcomes[i] != 'A' {
			continue
		}
		edges = detector.AddAt(e.run.clock.time(at[i]), reader.event(i), edges[:0])
		for _, edge := range edges {
			if edge.First {
				firsts = append(firsts, first{e.times[i], parts(rule.Key, edge.Key)})
			}
		}
	}
	rep.HotKeys = pointer(int64(len(firsts)))
	for _, f := range firsts[:min(len(firsts), maxFirst)] {
		rep.FirstHot = append(rep.FirstHot, Moment{Keyed{f.key}, e.run.epoch(f.tick)})
	}
	rep.SHA256 = e.run.digestMoments(func(yield func(int64, string) bool) {
		for _, f := range firsts {
			if !yield(f.tick, joined(f.key)) {
				return
			}
		}
	})
	return rep, nil
}

// keyName returns the field's name, or the list of names.
func keyName(k match.Key) any {
	if names := k.Fields(); len(names) > 1 {
		return names
	}
	return k.String()
}

// parts takes a counted key apart.
func parts(k match.Key, key string) Key {
	var out Key
	for part := range k.Parts([]byte(key)) {
		out = append(out, string(part))
	}
	return out
}

// joined is a key as digests have it: the parts of a composite key with tabs
// between them.
func joined(k Key) string { return strings.Join(k, "\t") }
