package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/ratelimit"
)

// judge fills in the part of the report that is about keys and rules.
func (r *run) judge(ctx context.Context, t *timeline, report *Report) error {
	e := &events{timeline: t, run: r, report: report, ranks: map[int]ranking{}, far: r.isFar(t.times)}
	for _, field := range r.rankedFields() {
		e.ranks[r.column(field)] = t.rank(r.column(field), r.Top)
	}
	if err := e.checkFields(); err != nil {
		return err
	}
	main := e.ranks[r.column(r.Key)]
	report.Keys = main.distinct
	if len(t.times) > 0 {
		first, last := slices.Min(t.times), slices.Max(t.times)
		f, l := r.epoch(first), r.epoch(last)
		report.First, report.Last = &f, &l
		report.Start, report.End = r.clock.time(first), r.clock.time(last)
		report.Timeline, report.Bar = r.picture(t.times, first, last)
	}
	peaks := r.peaksOf(t, r.column(r.Key), main)
	report.Top = topKeys(t, r.column(r.Key), main, peaks)
	report.Fits = fits(main, peaks)
	if r.Rules != nil {
		return e.judgeRules(ctx, report)
	}
	return e.judgeWhatIfs(ctx, report)
}

// events is a timeline as it is judged.
type events struct {
	*timeline
	run    *run
	report *Report
	ranks  map[int]ranking // by column, of the fields whose busiest keys are reported
	far    bool            // times are beyond what rules can count in nanoseconds
}

// rankedFields returns the fields whose busiest keys are reported.
func (r *run) rankedFields() []string {
	names := []string{r.Key}
	for _, w := range r.WhatIfs {
		if w.Kind != Hot && !slices.Contains(names, w.Key) {
			names = append(names, w.Key)
		}
	}
	return names
}

// A verdict is what one what-if said of its column's events.
type verdict struct {
	at        []int64  // ticks at which each event is judged
	decisions []byte   // for each event 'A', 'D', or 0 when it has no key
	bans      []uint32 // for each value, how many bans it got
	refused   []uint32 // for each value, how many of its events were refused
	marks     [][]mark // for each part, bans or first edges
}

// A mark is an event that started something.
type mark struct {
	event int32
	id    uint32
}

// judgeWhatIfs judges each what-if on its own, its keys spread over all cores.
func (e *events) judgeWhatIfs(ctx context.Context, report *Report) error {
	r := e.run
	parts := r.Cores
	r.Progress.Judging.Store(int64(len(r.WhatIfs)))
	verdicts := make([]verdict, len(r.WhatIfs))
	errs := make([]error, len(r.WhatIfs)*parts)
	for i, w := range r.WhatIfs {
		n := len(e.values[r.column(w.Key)])
		v := &verdicts[i]
		v.at, v.marks = e.whatIfTimes(w), make([][]mark, parts)
		if w.Kind != Hot {
			v.decisions = make([]byte, len(e.times))
			v.refused, v.bans = make([]uint32, n), make([]uint32, n)
		}
	}
	r.parallel(len(errs), func(i int) {
		errs[i] = e.judgePart(ctx, r.WhatIfs[i/parts], &verdicts[i/parts], i%parts)
		if i%parts == parts-1 {
			r.Progress.Judged.Add(1)
		}
	})
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return err
		}
	}
	report.Rules = make([]RuleReport, len(r.WhatIfs))
	r.parallel(len(r.WhatIfs), func(i int) {
		report.Rules[i] = e.reportWhatIf(r.WhatIfs[i], &verdicts[i])
	})
	for i, w := range r.WhatIfs {
		var err error
		if report.Rules[i].RefusedRange, err = e.whatIfRange(ctx, w); err != nil {
			return err
		}
	}
	for _, v := range verdicts {
		if r.Decisions != nil && v.decisions != nil {
			r.writeDecisions(judged(v.decisions), report)
		}
	}
	return nil
}

// writeDecisions writes the decisions that were asked for. The report does not
// fall with them.
func (r *run) writeDecisions(decisions []byte, report *Report) {
	if _, err := r.Decisions.Write(decisions); err != nil {
		report.Problems = append(report.Problems, fmt.Sprintf("the decisions cannot be written: %v", err))
	}
}

// judgePart judges the events of the keys that belong to a part.
func (e *events) judgePart(ctx context.Context, w WhatIf, v *verdict, part int) error {
	if w.Kind == Hot {
		return e.detectPart(ctx, w, v, part)
	}
	rule, err := w.limitRule(e.run.Algorithm, e.run.CountRefused)
	if err != nil {
		return err
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, rule)
	if err != nil {
		return err
	}
	limiter, err := e.run.limiter(set)
	if err != nil {
		return err
	}
	judge, err := limiter.Rule(rule.Name)
	if err != nil {
		return err
	}
	values := e.values[e.run.column(w.Key)]
	for i, id := range e.part(ctx, w.Key, part) {
		d := judge.TakeN(e.run.clock.time(v.at[i]), 1, keyOf(values[id]))
		if d.Allowed {
			v.decisions[i] = 'A'
			continue
		}
		v.decisions[i] = 'D'
		v.refused[id]++
		if d.Started {
			v.bans[id]++
			v.marks[part] = append(v.marks[part], mark{int32(i), id})
		}
	}
	return nil
}

func (e *events) detectPart(ctx context.Context, w WhatIf, v *verdict, part int) error {
	rule, err := w.hotRule()
	if err != nil {
		return err
	}
	set, err := hotkey.NewSet(rule)
	if err != nil {
		return err
	}
	detector, err := hotkey.NewDetector(set, hotkey.DetectorConfig{Shards: 1})
	if err != nil {
		return err
	}
	values := e.values[e.run.column(w.Key)]
	for i, id := range e.part(ctx, w.Key, part) {
		if edge, hot, _ := detector.AddKeyAt(e.run.clock.time(v.at[i]), rule.Name, values[id]); hot && edge.First {
			v.marks[part] = append(v.marks[part], mark{int32(i), id})
		}
	}
	return nil
}

// keyOf returns the key of a value, which may be empty in a log and not in a key.
func keyOf(value string) string {
	if value == "" {
		return "\x00 an empty value"
	}
	return value
}

// limiter returns a Limiter of set for one goroutine, in event time. It counts as
// a live one does, in nanoseconds, unless the times were floored on demand.
func (r *run) limiter(set *ratelimit.Set) (*ratelimit.Limiter, error) {
	return ratelimit.NewLimiter(set, ratelimit.Config{Resolution: r.Resolution, Budget: ratelimit.NoBudget, JitterSeed: 1})
}

// checkEvery is after how many events a judging loop looks whether it shall
// stop.
const checkEvery = 1 << 16

// part yields the events that have the field and belong to a part, with the
// number of the value, until ctx is done. A value's events all belong to one
// part.
func (e *events) part(ctx context.Context, field string, part int) iter.Seq2[int, uint32] {
	col, parts := e.cols[e.run.column(field)], uint32(e.run.Cores)
	return func(yield func(int, uint32) bool) {
		for i, id := range col {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return
			}
			if id != 0 && id%parts == uint32(part) && !yield(i, id) {
				return
			}
		}
	}
}

// reportWhatIf makes the report of one what-if.
func (e *events) reportWhatIf(w WhatIf, v *verdict) RuleReport {
	col := e.run.column(w.Key)
	rep := RuleReport{Name: w.Text, Kind: w.Kind, Key: w.Key, LimitJSON: limitJSON(w.limit()), Algorithm: "exact"}
	marks := slices.Concat(v.marks...)
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.event, b.event) })
	moments := func(yield func(int64, string) bool) {
		for _, m := range marks {
			if !yield(e.times[m.event], e.values[col][m.id]) {
				return
			}
		}
	}
	if w.Kind == Hot {
		rep.HotKeys = pointer(int64(len(marks)))
		rep.SHA256 = e.run.digestMoments(moments)
		rep.FirstHot = []Moment{}
		for _, m := range marks[:min(len(marks), maxFirst)] {
			rep.FirstHot = append(rep.FirstHot, Moment{Keyed{Key{e.values[col][m.id]}}, e.run.epoch(e.times[m.event])})
		}
		return rep
	}
	if w.Kind == Limit {
		rep.Algorithm = e.run.Algorithm.String()
	}
	decisions := judged(v.decisions)
	rep.SHA256 = digest(decisions)
	refused := countOf(decisions, 'D')
	rep.Refused, rep.Allowed = pointer(refused), pointer(int64(len(decisions))-refused)
	rep.KeysRefused = pointer(nonZero(v.refused))
	rep.MostRefused = mostRefused(e.values[col], v.refused, v.bans)
	rep.Busiest = e.busiest(w, v)
	if w.Kind == Ban {
		rep.BanList, rep.BansLeftOut = e.banList(marks, w.For, e.values[col])
		rep.BanSeconds = w.For.Seconds()
		rep.Bans, rep.BannedKeys = pointer(int64(len(marks))), pointer(nonZero(v.bans))
		rep.StartsSHA256 = e.run.digestMoments(moments)
	}
	return rep
}

// maxBans is how many bans of a rule are reported.
const maxBans = 1000

// banList reports the bans that these events began, each for the same time.
func (e *events) banList(marks []mark, long time.Duration, values []string) (bans []BanReport, leftOut int64) {
	bans = []BanReport{}
	for _, m := range marks[:min(len(marks), maxBans)] {
		bans = append(bans, e.banReport(m.event, Key{values[m.id]}, long))
	}
	return bans, int64(len(marks) - len(bans))
}

// banReport reports a ban that an event began.
func (e *events) banReport(event int32, key Key, long time.Duration) BanReport {
	start := e.run.clock.time(e.times[event])
	return BanReport{Keyed{key}, epochOf(start), epochOf(start.Add(long))}
}

// maxFirst is how many first edges are reported.
const maxFirst = 100

// busiest reports the busiest keys of the what-if's field.
func (e *events) busiest(w WhatIf, v *verdict) []BusyKey {
	col := e.run.column(w.Key)
	out := []BusyKey{}
	for _, id := range e.ranks[col].ids {
		refused := int64(v.refused[id])
		out = append(out, BusyKey{Keyed{Key{e.values[col][id]}}, e.ranks[col].counts[id] - refused, refused})
	}
	return out
}

func pointer(n int64) *int64 { return &n }

func countOf(decisions []byte, c byte) int64 {
	n := int64(0)
	for _, d := range decisions {
		if d == c {
			n++
		}
	}
	return n
}

func nonZero(counts []uint32) int64 {
	n := int64(0)
	for _, c := range counts {
		if c > 0 {
			n++
		}
	}
	return n
}

// maxRefused is how many refused keys are kept for the plain report.
const maxRefused = 10

// mostRefused returns the keys with the most refused events, then by bytes.
func mostRefused(values []string, refused, bans []uint32) []BannedKey {
	var out []BannedKey
	for id, n := range refused {
		if n > 0 {
			out = append(out, BannedKey{Key{values[id]}, int64(n), int64(bans[id])})
		}
	}
	return firstRefused(out)
}

func firstRefused(keys []BannedKey) []BannedKey {
	slices.SortFunc(keys, func(a, b BannedKey) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), slices.CompareFunc(a.Key, b.Key, strings.Compare))
	})
	return keys[:min(len(keys), maxRefused)]
}
