package replay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/match"
)

// parsed is the events of a block, and the counts of its lines.
type parsed struct {
	block

	times  []int64    // nanoseconds since 1970, or of the stand-in calendar
	grain  uint32     // what all times are multiples of: a power of ten, of a second at most
	cols   [][]uint32 // for each column, a number for each event
	places []position // of each event, its line in the block; nil if the run keeps no positions

	// For each column, the values that the worker has numbered so far, and the numbers
	// that they have in the stream.
	values  [][]string
	numbers []*renumbering

	whole   logSpan // of all events, whether in the cut or not
	span    span    // to which the events were cut while they were parsed
	leftOut int64   // events that are not in the cut

	lines, skipped, bad int64
	badLines            []BadLine

	// Of formats that may have times without a year, for each event. Such a time is in the
	// stand-in calendar until date gives it its year.
	years   []eventYear
	year    eventYear // of the next event
	standIn logSpan   // of the events without a year

	zoneless bool // there is an event whose time names no zone
	byClock  bool // there is one whose year is that of the clock

	dated       bool      // there are lines whose times have no year
	first, last time.Time // these, in the stand-in calendar
	after       int       // years after that of the file's first line
}

// An eventYear is whether the time of an event has its year.
type eventYear uint8

const (
	withYear eventYear = iota
	noYear
	noYearEither // a further event of a line
)

// A worker parses blocks. It numbers the values that it finds; the stream replaces these
// numbers by those of all workers.
type worker struct {
	run     *run
	columns []*interner
	top     []bool         // of columns whose values the stream need not keep
	numbers []*renumbering // of the columns, for the stream
	parsers map[accesslog.Format]*accesslog.Parser
	event   match.Event
	digests intake.Digests // of an event
	get     []func(*match.Event) []byte
	origin  bool               // the run uses the fields that say which log an event is from
	dated   span               // to which events with a whole date are cut while they are parsed
	locate  func(*match.Event) // nil if the run uses none of the fields that it sets
}

func (r *run) newWorker() *worker {
	w := &worker{run: r, parsers: make(map[accesslog.Format]*accesslog.Parser), dated: r.span, top: r.frequentOnly()}
	used := slices.Concat(r.cutFields, r.fields)
	w.origin = slices.Contains(used, eventfield.Log) || slices.Contains(used, eventfield.Format)
	if slices.ContainsFunc(used, located) {
		w.locate = r.Locate
	}
	for _, name := range r.fields {
		w.get = append(w.get, getter(name))
		w.columns, w.numbers = append(w.columns, newInterner()), append(w.numbers, new(renumbering))
	}
	return w
}

// getter returns a function that takes a field's value from an event.
func getter(name string) func(*match.Event) []byte {
	if name == partField {
		return func(e *match.Event) []byte { return partNames[e.Part] }
	}
	if f, ok := eventfield.Named(name); ok {
		return func(e *match.Event) []byte { return e.Get(f) }
	}
	return func(e *match.Event) []byte { return e.GetNamed(name) }
}

// parse reads all lines of b.
func (w *worker) parse(b block) *parsed {
	p := w.newParsed(b)
	if b.format.Yearless() {
		p.span = always
	}
	if len(b.data) > 0 {
		w.parseLines(p)
	}
	if b.tooLong {
		p.lines++
		w.bad(p, []byte(fmt.Sprintf("(a line of more than %d bytes)", accesslog.MaxLine)))
	}
	w.number(p)
	p.data = nil
	w.run.Progress.Lines.Add(p.lines)
	return p
}

// newParsed returns what b will be parsed to, without events.
func (w *worker) newParsed(b block) *parsed {
	p := &parsed{block: b, grain: second, cols: make([][]uint32, len(w.columns)), whole: noSpan, standIn: noSpan, span: w.dated}
	guess := len(b.data)/128 + 1
	p.times = make([]int64, 0, guess)
	for i := range p.cols {
		p.cols[i] = make([]uint32, 0, guess)
	}
	if w.run.positions {
		p.places = make([]position, 0, guess)
	}
	return p
}

// gather returns events as the only block of a file, with a line for each.
func (w *worker) gather(ctx context.Context, events iter.Seq[*match.Event]) (*parsed, error) {
	p := w.newParsed(block{end: true})
	for ev := range events {
		if p.lines++; p.lines%checkEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if inRange(ev.Time) {
			w.add(p, ev)
		} else {
			p.bad++
		}
	}
	w.number(p)
	return p, nil
}

// maxParsers is how many parsers a worker keeps. A log that names its columns again and
// again has as many formats.
const maxParsers = 100

// parseLines reads the lines of p's data.
func (w *worker) parseLines(p *parsed) {
	parser := w.parsers[p.format]
	if parser == nil {
		if len(w.parsers) > maxParsers {
			clear(w.parsers)
		}
		parser, _ = p.format.NewParser(accesslog.Options{}) // no year, so no error
		w.parsers[p.format] = parser
	}
	parser.Reset()
	mayLackYear := p.format.Yearless()
	p.zoneless = p.format.Zoneless() && !mayLackYear
	patterns := hasPatterns(p.format)
	for rest := p.data; len(rest) > 0; {
		var line []byte
		line, rest, _ = accesslog.CutLine(rest)
		p.lines++
		if !parser.Parse(line, &w.event) || !inRange(w.event.Time) {
			if parser.Skipped() {
				p.skipped++
			} else {
				w.bad(p, line)
			}
			continue
		}
		p.byClock = p.byClock || patterns && parser.Yearless()
		if mayLackYear {
			p.zoneless = p.zoneless || parser.Zoneless()
			if p.year = withYear; parser.Yearless() {
				p.year = noYear
			}
		}
		w.addParsed(p)
		for parser.Next(&w.event) {
			if p.year == noYear {
				p.year = noYearEither
			}
			w.addParsed(p)
		}
	}
	p.first, p.last, p.dated = parser.Dated()
}

// addParsed adds an event of a line.
func (w *worker) addParsed(p *parsed) {
	if w.run.identity != nil {
		w.run.identity.SetClient(&w.event)
	}
	if w.origin {
		eventfield.SetOrigin(&w.event, w.run.logs[p.file].origin, p.format.String())
	}
	w.add(p, &w.event)
}

// maxNumbered is how many values of a field a worker of a stream numbers before it begins
// again, so that not each worker has a copy of all.
const maxNumbered = 1 << 14

// number notes the numbers of the values of p.
func (w *worker) number(p *parsed) {
	p.numbers = slices.Clone(w.numbers)
	for c, in := range w.columns {
		p.values = append(p.values, in.values)
		if (w.run.Lateness > 0 || w.top[c]) && len(in.values) > maxNumbered {
			w.columns[c], w.numbers[c] = newInterner(), new(renumbering)
		}
	}
}

// add makes a record of ev, if that is in the cut. The precision of the log, and its first
// and last time, are of all events.
func (w *worker) add(p *parsed, ev *match.Event) {
	t := ev.Time.UnixNano()
	for nanos := uint32(ev.Time.Nanosecond()); nanos%p.grain != 0; {
		p.grain /= 10
	}
	if p.year == withYear {
		p.whole.add(logSpan{t, t})
	} else {
		p.standIn.add(logSpan{t, t})
	}
	if w.locate != nil && p.span.has(t) {
		w.locate(ev)
	}
	if !p.span.has(t) || !w.run.where.Holds(ev) {
		p.leftOut++
		return
	}
	p.times = append(p.times, t)
	if p.format.Yearless() {
		p.years = append(p.years, p.year)
	}
	if w.run.positions {
		p.places = append(p.places, position(p.lines))
	}
	if intake := w.run.intake; w.run.Events != nil {
		intake.KeptEvent(ev, &w.digests)
	} else {
		intake.Event(ev, &w.digests)
	}
	for i, in := range w.columns {
		var id uint32
		if v := w.get[i](ev); len(v) > 0 { // an empty value is none, as for rules
			id = in.id(v)
		}
		p.cols[i] = append(p.cols[i], id)
	}
}

const (
	maxBadLines = 10  // in a report
	maxBadText  = 200 // bytes of a bad line that are kept
)

func (w *worker) bad(p *parsed, line []byte) {
	p.bad++
	if len(p.badLines) < maxBadLines {
		end := min(len(line), maxBadText)
		for end < len(line) && end > maxBadText-utf8.UTFMax && !utf8.RuneStart(line[end]) { // not within a character
			end--
		}
		cut := line[:end]
		p.badLines = append(p.badLines, newBadLine(p.lines, cut, len(cut) < len(line)))
	}
}
