package accesslogtest

import (
	"cmp"
	"io"
	"math/rand/v2"
	"slices"
)

// Numbers of the random streams that are drawn from one seed.
const (
	streamWeights = iota + 1
	streamTimes
	streamScene
	streamLate
)

// A scene invents the lines of one kind of server. Times are in milliseconds
// since Config.Start; each method adds at least one line to b.
type scene interface {
	// session adds what one client does from time at on: from 1 to most
	// lines, the last before end. busy is the number of sessions that are
	// going on.
	session(b *batch, at, end int64, most, busy int)

	crawl(b *batch, at int64)
	flood(b *batch, at int64)
	crowd(b *batch, at int64, client string)
	hot(b *batch, at int64)
	dirty(b *batch, at int64, kind int)
}

// Write writes the log that c describes to w and returns what it holds. The
// only errors are those of c, before anything is written, and those of w.
//
// It keeps about one minute of the log in memory, and the addresses of its
// clients; it writes roughly a million lines a second.
func Write(w io.Writer, c Config) (Truth, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Truth{}, err
	}
	var (
		p     = newPlan(c)
		s     = newScene(c)
		out   = newOutput(w, c)
		times = rand.New(rand.NewPCG(c.Seed, streamTimes))
		b     batch
	)
	for cell := range p.weights {
		b.reset()
		p.fill(&b, s, cell, times)
		b.sort()
		if err := out.put(&b); err != nil {
			return Truth{}, err
		}
	}
	if err := out.flush(); err != nil {
		return Truth{}, err
	}
	p.describe(&out.truth, c.Start)
	return out.truth, nil
}

func newScene(c Config) scene {
	if c.Format == SyslogSSHD {
		return newSSHD(c)
	}
	return newShop(c)
}

// A batch is the lines of one cell. Their text is in one buffer.
type batch struct {
	buf   []byte
	lines []line
}

type line struct {
	at       int64 // milliseconds since Config.Start
	from, to int   // the text, in batch.buf
	client   string
	event    bool // false for a bad line
}

func (b *batch) reset() { b.buf, b.lines = b.buf[:0], b.lines[:0] }

// end ends the line whose text was appended to buf after from.
func (b *batch) end(at int64, from int, client string, event bool) {
	b.buf = append(b.buf, '\n')
	b.lines = append(b.lines, line{at, from, len(b.buf), client, event})
}

// cut makes the last line, which is longer than cutAt, a bad one.
func (b *batch) cut() {
	last := b.lines[len(b.lines)-1]
	b.lines = b.lines[:len(b.lines)-1]
	b.buf = b.buf[:last.from+cutAt]
	b.end(last.at, last.from, last.client, false)
}

// cutAt is a length within the time of a CLF line, and within the first values
// of the others.
const cutAt = 34

func (b *batch) sort() {
	slices.SortStableFunc(b.lines, func(x, y line) int { return cmp.Compare(x.at, y.at) })
}
