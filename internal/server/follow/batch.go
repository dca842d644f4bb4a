package follow

import (
	"bytes"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

const (
	batchEvents = 256
	batchText   = 128 << 10 // bytes of values; the last event may exceed it
	batches     = 3         // one is parsed and one judged, and one waits
)

// A batch is events that were parsed and are not judged yet, with copies of their values.
type batch struct {
	events []match.Event // those after n are reused
	n      int
	text   []byte

	size                int // of the lines that have ended, since the batch before
	begun               int // events of the line after these, if that has not ended
	lines, skipped, bad uint64
	columns             string // the last line that names columns, if there is one
}

// newBatches returns empty batches, which are all free.
func newBatches() chan *batch {
	free := make(chan *batch, batches)
	for range batches {
		free <- new(batch)
	}
	return free
}

func (b *batch) add(ev *match.Event) {
	if b.n == len(b.events) {
		b.events = append(b.events, match.Event{})
	}
	b.text = ev.CopyTo(&b.events[b.n], b.text)
	b.n++
}

// A blockParser parses whole lines, while others judge the events before.
type blockParser struct {
	*lineParser
	rest   []byte
	event  match.Event // of the line before rest
	inLine bool        // it may have another event
	begun  int         // events of that line so far
	skip   int         // of these, those that were passed on before
	left   int         // bytes from the first line that has not ended
}

// parse returns the events of p, in free batches. Each is to be given back.
func (p *blockParser) parse(free <-chan *batch) <-chan *batch {
	parsed := make(chan *batch, batches)
	go func() {
		defer close(parsed)
		for p.inLine || len(p.rest) > 0 {
			b := <-free
			p.fill(b)
			parsed <- b
		}
	}()
	return parsed
}

// fill replaces b by the next events.
func (p *blockParser) fill(b *batch) {
	*b = batch{events: b.events, text: b.text[:0]}
	begin, line := p.left, p.left
	for b.n < batchEvents && len(b.text) < batchText {
		if p.inLine && p.Next(&p.event) {
			p.add(b)
			continue
		}
		p.inLine, p.begun = false, 0
		line = len(p.rest)
		if line == 0 {
			break
		}
		p.inLine = p.line(b)
	}
	if p.left = line; !p.inLine {
		p.left = len(p.rest)
	}
	b.size, b.begun = begin-p.left, p.begun
}

// add adds the event of a line, unless it was passed on before.
func (p *blockParser) add(b *batch) {
	p.begun++
	if p.skip == 0 {
		b.add(&p.event)
		return
	}
	p.skip--
}

// line parses the next line, and reports whether it has an event.
func (p *blockParser) line(b *batch) bool {
	var line []byte
	line, p.rest, _ = accesslog.CutLine(p.rest)
	b.lines++
	switch {
	case p.Parse(line, &p.event):
		p.add(b)
		return true
	case p.Skipped():
		b.skipped++
		if bytes.HasPrefix(line, columnsDirective) {
			b.columns = string(line)
		}
	default:
		b.bad++
	}
	return false
}
