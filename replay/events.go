package replay

import (
	"context"
	"slices"
	"time"
)

// events is the events of a run as they are judged, a chunk at a time.
type events struct {
	*timeline // the chunk
	run       *run
	report    *Report // nil before all files were read
	columns   []*keyColumn
	judgings  []*judging
	before    int64      // number of events in earlier chunks
	scale     barScale   // of the counts over time
	bars      []int64    // events
	refusals  Refusals   // see ruleOutcomes.bars
	top       *keyCounts // of Config.Key
	traffic   *tally     // nil without Config.Traffic
	refused   []int64    // events of each value of it, with SortRefused
	problems  []string
}

// newEvents returns events of which none has come yet.
func (r *run) newEvents() *events {
	e := &events{run: r, timeline: &timeline{cols: make([][]uint32, len(r.fields))}}
	for range r.fields {
		e.values = append(e.values, []string{""})
	}
	_ = e.restart(context.Background()) // there are no events
	spans := make([]time.Duration, len(peakWindows))
	for i := range peakWindows {
		spans[i] = peakWindows[i].span
	}
	if r.Traffic && !r.suggests {
		e.traffic = r.newTally()
	}
	e.top = newKeyCounts(e.keyColumn(e.run.key), spans)
	return e
}

// restart makes a new judging of each ruleset of the run for the events of the chunk. Its error is
// that of ctx.
func (e *events) restart(ctx context.Context) error {
	e.judgings = nil
	for i := range e.run.rulesets {
		e.judgings = append(e.judgings, e.newJudging(&e.run.rulesets[i]))
	}
	return e.load(ctx, e.timeline)
}

// span returns the first and the last time of the chunk. It reports false if there is no
// event.
func (e *events) span() (first, last int64, ok bool) {
	if len(e.times) == 0 {
		return 0, 0, false
	}
	return e.times[0], e.times[len(e.times)-1], true
}

// judge judges the next chunk.
func (e *events) judge(ctx context.Context, t *timeline) error {
	if err := e.load(ctx, t); err != nil {
		return err
	}
	e.countKeys(e.top, nil)
	if err := e.judgeAll(ctx); err != nil {
		return err
	}
	for _, j := range e.judgings {
		if j.together != nil {
			j.together.count(j.outcomes)
		}
	}
	e.countBars()
	e.countAllowed()
	e.countRefused()
	if e.traffic != nil {
		e.traffic.add(e, nil)
	}
	e.before += int64(len(e.times))
	return nil
}

// load makes t the chunk. Its error is that of ctx.
func (e *events) load(ctx context.Context, t *timeline) error {
	e.timeline = t
	e.run.parallel(len(e.columns), func(i int) {
		if ctx.Err() == nil {
			e.fill(ctx, e.columns[i])
		}
	})
	for _, j := range e.judgings {
		j.reset(len(t.times))
	}
	return ctx.Err()
}

// finish fills in the part of the report that is about keys and rules.
func (e *events) finish(report *Report) error {
	e.report = report
	if err := e.checkRules(); err != nil {
		return err
	}
	for _, p := range e.problems {
		e.problem(p)
	}
	e.reportTimes()
	e.reportKeys()
	e.reportTraffic()
	e.reportAll()
	report.Summary = report.summary()
	return nil
}

// problem reports a problem once.
func (e *events) problem(sentence string) {
	if !slices.Contains(e.report.Problems, sentence) {
		e.report.Problems = append(e.report.Problems, sentence)
	}
}
