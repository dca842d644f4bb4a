package follow

import (
	"bytes"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

// A lineParser parses the lines of one file.
type lineParser struct {
	*accesslog.Parser
	format accesslog.Format
	zone   *time.Location
	dated  bool // there was an event, so that the year is known
}

func newLineParser(f accesslog.Format, zone *time.Location) *lineParser {
	p, _ := f.NewParser(accesslog.Options{Year: time.Now().In(zone).Year(), Zone: zone}) // a year from 1 to 9999, so no error
	return &lineParser{Parser: p, format: f, zone: zone}
}

// Parse parses a line. The first event whose time has no year is of the last twelve months.
func (p *lineParser) Parse(line []byte, ev *match.Event) bool {
	ok := p.Parser.Parse(line, ev)
	if !ok || p.dated || !p.Yearless() {
		return ok
	}
	p.dated = true
	if now := time.Now(); ev.Time.After(now.AddDate(0, 0, 1)) {
		p.Parser, _ = p.format.NewParser(accesslog.Options{Year: now.In(p.zone).Year() - 1, Zone: p.zone})
		return p.Parser.Parse(line, ev)
	}
	return true
}

// columnsDirective begins a line that names the columns of those after it.
var columnsDirective = []byte("#Fields:")

// read reads a block of g and passes on its events. It reports whether it has read any.
func (t *tail) read(g *generation, buf []byte, each func(*match.Event), now time.Time) (bool, error) {
	data, err := g.peek(buf)
	if err != nil {
		return false, err
	}
	if len(g.head) == 0 && g == t.current() && t.precede(g, g.saved(), now) {
		return true, nil // these come first
	}
	some, err := t.passLines(&g.parser, &g.linePlace, data, g.ended, each, g.advance, now)
	if !some {
		g.waiting = g.Offset + int64(len(data))
	}
	return some, err
}

// passLines passes on the events of the lines in data, a block or less, and calls advance with what it has gone past. The lines
// begin at a place; if the log has ended, the last one needs no end. It reports whether there were any.
func (r *logReader) passLines(p **lineParser, at *linePlace, data []byte, ended bool, each func(*match.Event), advance func([]byte) error, now time.Time) (some bool, err error) {
	whole := bytes.LastIndexByte(data, '\n') + 1
	switch {
	case at.Skipping || whole == 0 && len(data) == blockSize:
		return len(data) > 0, r.skip(at, data, ended && len(data) < blockSize, advance)
	case whole > 0:
		data = data[:whole]
	case !ended || len(data) == 0:
		return false, nil
	}
	r.stats.LastLine = now
	*p = r.parserFor(*p, at.Columns, data)
	return true, r.passBlock(*p, at, data, each, advance)
}

// skip goes past a line that is too long, or the part of it that data has.
func (r *logReader) skip(at *linePlace, data []byte, ended bool, advance func([]byte) error) error {
	end := bytes.IndexByte(data, '\n') + 1
	if at.Skipping = end == 0 && !ended; !at.Skipping {
		r.stats.Lines++
		r.stats.Bad++
	}
	if end > 0 {
		data = data[:end]
	}
	return advance(data)
}
