package follow

import (
	"bytes"
	"cmp"
	"errors"
	"math"
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

// passBlock passes on the events of data, whole lines of g, and goes past them. They are parsed
// on another core.
func (t *tail) passBlock(g *generation, data []byte, each func(*match.Event)) (err error) {
	p := blockParser{lineParser: g.parser, rest: data, skip: g.Begun, left: len(data)}
	now, newest := time.Now(), int64(math.MinInt64)
	for b := range p.parse(t.batches) {
		t.stats.Lines += b.lines
		t.stats.Skipped += b.skipped
		t.stats.Bad += b.bad
		g.Columns = cmp.Or(b.columns, g.Columns)
		for i := range b.n {
			newest = max(newest, b.events[i].Time.UnixNano())
			t.clients.look(&b.events[i])
			t.pass(&b.events[i], each, now)
		}
		err = errors.Join(err, g.advance(data[:b.size]))
		data, g.Begun = data[b.size:], b.begun
		t.batches <- b
		t.passed()
	}
	if newest > math.MinInt64 {
		t.checkZone(newest, now)
		t.checkClients()
	}
	return err
}

// pass passes on an event. One that is ahead of now has the time now: a wrong time in one
// line must not make all after it late.
func (t *tail) pass(ev *match.Event, each func(*match.Event), now time.Time) {
	at := ev.Time.UnixNano()
	if limit := now.UnixNano(); at > limit {
		at, ev.Time = limit, now.UTC()
	}
	if t.newest-at > t.lateness {
		t.stats.Late++
	}
	t.newest = max(t.newest, at)
	each(ev)
}

// useParser makes the parser of g, if the format is known or found in data.
func (t *tail) useParser(g *generation, data []byte) {
	if !t.known {
		f, found := t.format, t.format.String() != ""
		if !found {
			f, found = accesslog.Detect(data)
		}
		if found {
			f, found = f.Inside(data)
		}
		switch {
		case found:
			t.format, t.known, g.parser = f, true, nil
			t.log.Info("the format of the log is known", "file", t.path, "format", f.String())
		case g.parser == nil:
			t.log.Warn("the format of the log is not known, so its lines are bad: name it after the file, as in FILE=clf", "file", t.path)
		}
	}
	if g.parser != nil {
		return
	}
	g.parser = newLineParser(t.format, t.zone)
	if g.Columns != "" {
		g.parser.Parse([]byte(g.Columns), new(match.Event))
	}
}

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
	t.useParser(g, data)
	t.stats.LastLine = now
	return true, t.passBlock(g, data, each)
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
