package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
)

// A Cut selects the events that are replayed: those in [Since, Until) for which Where
// holds. Rules do not see other events: windows are empty where the cut begins, and
// events outside Where are not counted. The zero Cut selects all events.
type Cut struct {
	Since, Until Bound

	// Where are conditions FIELD=PATTERN on any fields of the log, as under when in a
	// rules file: conditions on one field are alternatives; those on different fields
	// must all hold. FIELD!=PATTERN is an exception. In one text, " || " separates
	// alternatives.
	Where []string
}

// A Bound is an end of a Cut: a time, or a distance from the end of the log. The zero
// Bound does not cut.
type Bound struct {
	At time.Time

	// BeforeEnd, if not 0, replaces At: the bound is that long before the newest
	// event of the log, which the cut may omit.
	BeforeEnd time.Duration
}

// boundLayouts are the forms of a time in ParseBound.
var boundLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	"02/Jan/2006:15:04:05 -0700", // as access logs have it
}

// ParseBound parses an end of a cut: a time, such as 2024-01-29T10:05:00Z, "2024-01-29
// 10:05", 2024-01-29 or 29/Jan/2024:10:05:00 +0000, or -2h, two hours before the newest
// event of the log. A time without a zone is in zone; nil means UTC.
func ParseBound(text string, zone *time.Location) (Bound, error) {
	zone = cmp.Or(zone, time.UTC)
	if before, ok := strings.CutPrefix(text, "-"); ok {
		d, err := rulevalue.ParseDuration(before)
		if err != nil {
			return Bound{}, fmt.Errorf("%q: %w", text, err)
		}
		return Bound{BeforeEnd: d}, nil
	}
	for _, layout := range boundLayouts {
		t, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if !inRange(t) {
			return Bound{}, fmt.Errorf("%q: must be of a year from %d to %d", text, firstYear, lastYear)
		}
		return Bound{At: t}, nil
	}
	return Bound{}, fmt.Errorf("%q: must be a time such as 2024-01-29T10:05:00Z, \"2024-01-29 10:05\" or 2024-01-29, or -2h for two hours before the end of the log", text)
}

// given returns the options by which c was given, for messages.
func (c *Cut) given() string {
	var options []string
	if c.Since != (Bound{}) {
		options = append(options, "--since")
	}
	if c.Until != (Bound{}) {
		options = append(options, "--until")
	}
	if len(c.Where) > 0 {
		options = append(options, "--where")
	}
	return strings.Join(options, ", ")
}

// compile returns the condition of the cut, and the fields that it uses. Events can have these fields.
func (c *Cut) compile(fields []string) (where match.Condition, used []string, err error) {
	var w match.When
	for _, text := range c.Where {
		if err := addWhere(&w, text); err != nil {
			return where, nil, fmt.Errorf("--where: %w", err)
		}
	}
	if where, err = w.Compile(); err != nil {
		return where, nil, fmt.Errorf("--where: %w", err)
	}
	used = when.Fields(&w)
	for _, field := range used {
		if err := knownField("--where", field, fields); err != nil {
			return where, nil, err
		}
	}
	for i, b := range []Bound{c.Since, c.Until} {
		if b.BeforeEnd < 0 || b.BeforeEnd > 0 && !b.At.IsZero() {
			return where, nil, fmt.Errorf("%s: must be a time, or a distance from the end of the log of more than 0", []string{"--since", "--until"}[i])
		}
	}
	if s, u := c.Since, c.Until; !s.At.IsZero() && !u.At.IsZero() && !s.At.Before(u.At) || u.BeforeEnd > 0 && s.BeforeEnd > 0 && s.BeforeEnd <= u.BeforeEnd {
		return where, nil, errors.New("--until: must be after --since")
	}
	return where, used, nil
}

// addWhere adds to w a condition FIELD=PATTERN or FIELD!=PATTERN, or several with " || " between them as
// alternatives.
func addWhere(w *match.When, text string) error {
	texts := strings.Split(text, " || ")
	if len(texts) > 1 {
		alternatives := make([]match.When, len(texts))
		for i, one := range texts {
			if err := addWhere(&alternatives[i], strings.TrimSpace(one)); err != nil {
				return err
			}
		}
		w.Not = append(w.Not, match.When{Not: alternatives}) // w may have other alternatives, one of which must hold, too
		return nil
	}
	field, pattern, ok := strings.Cut(text, "=")
	field, negated := strings.CutSuffix(field, "!")
	if !ok || field == "" || pattern == "" {
		return fmt.Errorf("%q: must be FIELD=PATTERN or FIELD!=PATTERN, such as status=5xx or path!=/api/**", text)
	}
	if !negated {
		return when.Add(w, field, pattern)
	}
	var exception match.When
	err := when.Add(&exception, field, pattern)
	w.Not = append(w.Not, exception)
	return err
}

// A span is the times from and up to which events are replayed, in nanoseconds.
type span struct{ since, until int64 }

var always = span{math.MinInt64, math.MaxInt64}

func (s span) has(t int64) bool { return s.since <= t && t < s.until }

// relative reports whether the cut depends on the end of the log.
func (c *Cut) relative() bool { return c.Since.BeforeEnd > 0 || c.Until.BeforeEnd > 0 }

// span returns the times of the cut in a log whose newest event is at end.
func (c *Cut) span(end int64) span {
	s := always
	if c.Since != (Bound{}) {
		s.since = c.Since.nanos(end)
	}
	if c.Until != (Bound{}) {
		s.until = c.Until.nanos(end)
	}
	return s
}

func (b Bound) nanos(end int64) int64 {
	if b.BeforeEnd > 0 {
		return end - int64(b.BeforeEnd)
	}
	return b.At.UnixNano()
}

// A CutReport is the cut of a replay.
type CutReport struct {
	Since   *Epoch   `json:"since,omitempty"`
	Until   *Epoch   `json:"until,omitempty"` // exclusive
	Where   []string `json:"where,omitempty"` // FIELD=PATTERN
	LeftOut int64    `json:"left_out"`        // events that are not in the cut
}

// A logSpan is the times of all events of a log, whether they are in the cut or not.
type logSpan struct{ first, last int64 }

var noSpan = logSpan{math.MaxInt64, math.MinInt64}

func (s *logSpan) add(o logSpan) { s.first, s.last = min(s.first, o.first), max(s.last, o.last) }

// whole returns the times of all events of the files.
func (r *run) whole() logSpan {
	whole := noSpan
	for _, l := range r.logs {
		whole.add(l.whole)
	}
	return whole
}

// cutReport returns the cut; nil if there is none.
func (r *run) cutReport() *CutReport {
	if r.Cut.given() == "" {
		return nil
	}
	report := &CutReport{Where: slices.Sorted(slices.Values(r.Cut.Where))}
	if r.Cut.Since != (Bound{}) {
		report.Since = new(epoch(r.span.since))
	}
	if r.Cut.Until != (Bound{}) {
		report.Until = new(epoch(r.span.until))
	}
	for _, l := range r.logs {
		report.LeftOut += l.leftOut
	}
	return report
}

// checkCut returns an error if there are events but none in the cut.
func (r *run) checkCut(report *Report) error {
	if report.Cut == nil || report.Events > 0 || report.Cut.LeftOut == 0 {
		return nil
	}
	whole := r.whole()
	report.Problems = append(report.Problems, fmt.Sprintf("%s: none of %s is in the cut; the log is from %s to %s UTC",
		r.Cut.given(), plural(int(report.Cut.LeftOut), "event", "events"),
		exactStamp(epoch(whole.first), time.UTC), exactStamp(epoch(whole.last), time.UTC)))
	return &InputError{report.Problems}
}

// filter keeps the events whose times f accepts, at the times that it returns, and
// returns how many it removed.
func (b *parsed) filter(f func(nanos int64) (int64, bool)) (removed int64) {
	kept := 0
	for i, nanos := range b.times {
		t, ok := f(nanos)
		if !ok {
			continue
		}
		b.times[kept] = t
		for _, col := range b.cols {
			col[kept] = col[i]
		}
		if b.places != nil {
			b.places[kept] = b.places[i]
		}
		kept++
	}
	removed = int64(len(b.times) - kept)
	b.times, b.places = b.times[:kept], b.places[:min(kept, len(b.places))]
	for c := range b.cols {
		b.cols[c] = b.cols[c][:kept]
	}
	return removed
}
