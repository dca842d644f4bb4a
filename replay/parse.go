package replay

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

// parsed is the events of a block, and the counts of its lines.
type parsed struct {
	block
	worker int // whose interners numbered the values

	times  []int64    // nanoseconds since 1970, or of the stand-in calendar
	grain  uint32     // what all times are multiples of: a power of ten, of a second at most
	cols   [][]uint32 // for each column, a number for each event
	places []position // of each event, its line in the block; nil if the run keeps no positions

	whole   logSpan // of all events, whether in the cut or not
	span    span    // to which the events were cut while they were parsed
	leftOut int64   // events that are not in the cut

	lines, skipped, bad int64
	badLines            []BadLine

	dated       bool      // there are lines whose times have no year
	first, last time.Time // these, in the stand-in calendar
}

// A worker parses blocks. It numbers the values that it finds; assemble replaces these
// numbers by those of all workers.
type worker struct {
	number  int
	run     *run
	columns []*interner
	parsers map[int]*accesslog.Parser // by file
	event   match.Event
	get     []func(*match.Event) []byte
	where   match.Condition
	dated   span // to which events with a whole date are cut while they are parsed
}

func (r *run) newWorker(number int) *worker {
	w := &worker{number: number, run: r, parsers: make(map[int]*accesslog.Parser), where: r.where, dated: always}
	if !r.Cut.relative() {
		w.dated = r.Cut.span(0)
	}
	for _, name := range r.fields {
		w.get = append(w.get, getter(name))
		w.columns = append(w.columns, newInterner())
	}
	return w
}

// getter returns a function that takes a field's value from an event.
func getter(name string) func(*match.Event) []byte {
	if f, ok := match.FieldNamed(name); ok {
		return func(e *match.Event) []byte { return e.Get(f) }
	}
	return func(e *match.Event) []byte { return e.GetNamed(name) }
}

// parse reads all lines of b.
func (w *worker) parse(b block) *parsed {
	p := &parsed{block: b, worker: w.number, grain: second, cols: make([][]uint32, len(w.columns)), whole: noSpan, span: w.dated}
	if b.format.Yearless() {
		p.span = always
	}
	guess := len(b.data)/128 + 1
	p.times = make([]int64, 0, guess)
	for i := range p.cols {
		p.cols[i] = make([]uint32, 0, guess)
	}
	if len(b.data) > 0 {
		w.parseLines(p)
	}
	if b.tooLong {
		p.lines++
		w.bad(p, []byte(fmt.Sprintf("(a line of more than %d bytes)", accesslog.MaxLine)))
	}
	p.data = nil
	w.run.Progress.Lines.Add(p.lines)
	return p
}

// parseLines reads the lines of p's data.
func (w *worker) parseLines(p *parsed) {
	parser := w.parsers[p.file]
	if parser == nil {
		parser, _ = p.format.NewParser(accesslog.Options{}) // no year, so no error
		w.parsers[p.file] = parser
	}
	parser.Reset()
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
		w.add(p)
		for parser.Next(&w.event) {
			w.add(p)
		}
	}
	p.first, p.last, p.dated = parser.Dated()
}

// add makes a record of the worker's event, if that is in the cut. The precision of the
// log, and its first and last time, are of all events.
func (w *worker) add(p *parsed) {
	t := w.event.Time.UnixNano()
	for nanos := uint32(w.event.Time.Nanosecond()); nanos%p.grain != 0; {
		p.grain /= 10
	}
	p.whole.add(logSpan{t, t})
	if !p.span.has(t) || !w.where.Holds(&w.event) {
		p.leftOut++
		return
	}
	p.times = append(p.times, t)
	if w.run.positions {
		p.places = append(p.places, position(p.lines))
	}
	for i, in := range w.columns {
		var id uint32
		if v := w.get[i](&w.event); len(v) > 0 { // an empty value is none, as for rules
			id = in.id(v)
		}
		p.cols[i] = append(p.cols[i], id)
	}
}

// maxBadText is how many bytes of a bad line are kept.
const maxBadText = 200

func (w *worker) bad(p *parsed, line []byte) {
	p.bad++
	if len(p.badLines) < w.run.BadLines {
		end := min(len(line), maxBadText)
		for end < len(line) && end > maxBadText-utf8.UTFMax && !utf8.RuneStart(line[end]) { // not within a character
			end--
		}
		cut := line[:end]
		p.badLines = append(p.badLines, newBadLine(p.lines, cut, len(cut) < len(line)))
	}
}
