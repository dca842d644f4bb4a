package accesslogtest

import (
	"bufio"
	"cmp"
	"io"
	"math/rand/v2"
	"slices"
)

// Numbers of the random streams that are drawn from one seed.
const (
	streamWeights = iota + 1
	streamTimes
	streamShop
)

// Write writes the log that c describes to w and returns its contents. The
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
		s     = newShop(c)
		out   = bufio.NewWriterSize(w, 1<<16)
		times = rand.New(rand.NewPCG(c.Seed, streamTimes))
		truth = p.truth()
		seen  = make(map[string]struct{})
		b     batch
	)
	for cell := range p.weights {
		b.buf, b.lines = b.buf[:0], b.lines[:0]
		p.fill(&b, s, cell, times)
		slices.SortStableFunc(b.lines, func(x, y line) int { return cmp.Compare(x.at, y.at) })
		for _, l := range b.lines {
			truth.Lines++
			if l.event {
				seen[l.client] = struct{}{}
			} else {
				truth.Bad++
			}
			if _, err := out.Write(b.buf[l.from:l.to]); err != nil {
				return Truth{}, err
			}
		}
	}
	truth.Clients = len(seen)
	return truth, out.Flush()
}

// A batch is the lines of one cell. Their text is in one buffer.
type batch struct {
	buf   []byte
	lines []line
}

type line struct {
	at       int64 // milliseconds since start
	from, to int   // the text, in batch.buf
	client   string
	event    bool // false for a bad line
}

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

// cutAt is a length within the time of a line.
const cutAt = 34
