package replay

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// shownCounted is how many of the first and of the last events of a window the plain
// explanation shows.
const shownCounted = 5

// WriteText writes the explanation for people. Keys are escaped as in [Report.WriteText].
func (x *Explanation) WriteText(out io.Writer, style TextStyle) error {
	w := newTextWriter(out, style)
	w.assumed(&x.AssumedTimes)
	w.cut(x.Cut)
	w.f("%s: %s judged, %s refused\n", keyText(x.Value), plural(int(x.Events), "event", "events"), count(x.Refused))
	w.f("%s %s %s: ", w.place(&x.Event), exactStamp(x.Event.T, w.zone), w.zone)
	if x.Allowed {
		w.f("allowed\n")
	} else {
		w.f("refused by %s\n", visible(x.Rule))
		if x.NextPasses != nil {
			w.f("the next request passes at %s, %s later, if none comes before\n", exactStamp(*x.NextPasses, w.zone), long(x.NextPasses.Sub(x.Event.T.Time)))
		} else {
			w.f("no waiting helps\n")
		}
	}
	for i := range x.Rules {
		w.ruleExplanation(&x.Rules[i])
	}
	return w.Flush()
}

func (w *textWriter) ruleExplanation(r *RuleExplanation) {
	w.heading("%s", visible(r.Sentence))
	switch {
	case r.Ban != nil:
		w.f("  %s is banned from %s until %s, by %s after %s:\n", keyText(r.Key), exactStamp(r.Ban.Start.T, w.zone), exactStamp(r.Ban.Until, w.zone),
			w.place(&r.Ban.Start), plural(len(r.Ban.Counted)+int(r.Ban.CountedLeftOut), strings.TrimSuffix(r.Ban.Of, "s"), r.Ban.Of))
		w.logLines(r.Ban.Counted, r.Ban.CountedLeftOut)
	case len(r.Counted) > 0:
		verb := "allows"
		if r.Refused {
			verb = "refuses"
		}
		w.f("  the rule %s it: its window for %s has %s, its limit is %s:\n", verb, keyText(r.Key),
			plural(len(r.Counted)+int(r.CountedLeftOut), "event", "events"), count(int64(r.Limit)))
		w.logLines(r.Counted, r.CountedLeftOut)
	case r.Missing != "":
		w.f("  the rule refuses it: it has no %s\n", visible(r.Missing))
	case r.Refused:
		w.f("  the rule refuses it: its limit for %s is %s\n", keyText(r.Key), count(int64(r.Limit)))
	default:
		w.f("  the rule does not refuse it\n")
	}
}

// logLines writes the first and the last events of a window.
func (w *textWriter) logLines(lines []LogLine, leftOut int64) {
	if leftOut > 0 {
		w.f("    %s before\n", plural(int(leftOut), "event", "events"))
	}
	between := len(lines) - 2*shownCounted
	if between > 1 {
		last := lines[len(lines)-shownCounted:]
		lines = slices.Concat(lines[:shownCounted], last)
	}
	for i := range lines {
		if between > 1 && i == shownCounted {
			w.f("    %s between\n", plural(between, "event", "events"))
		}
		w.f("    %s  %s\n", exactStamp(lines[i].T, w.zone), w.place(&lines[i]))
	}
}

// place returns the file and the line.
func (w *textWriter) place(l *LogLine) string {
	return visible(l.File) + ":" + strconv.FormatInt(l.Line, 10)
}
