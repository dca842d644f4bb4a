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
	end := bytes.LastIndexByte(data, '\n') + 1
	if g.Skipping {
		return t.skip(g, data)
	}
	full := len(data) == blockSize
	switch {
	case end > 0:
		data = data[:end]
	case full:
		g.Skipping = true
		return t.skip(g, data)
	case !g.ended || len(data) == 0:
		g.waiting = g.Offset + int64(len(data))
		return false, nil
	}
	t.stats.LastLine = now
	g.parser = t.parserFor(g.parser, g.Columns, data)
	return true, t.passBlock(g.parser, &g.linePlace, data, each, g.advance)
}

// skip goes past a line that is too long, or the part of it that data has.
func (t *tail) skip(g *generation, data []byte) (bool, error) {
	if end := bytes.IndexByte(data, '\n') + 1; end > 0 || g.ended && len(data) < blockSize {
		if end > 0 {
			data = data[:end]
		}
		g.Skipping = false
		t.stats.Lines++
		t.stats.Bad++
	}
	return len(data) > 0, g.advance(data)
}
