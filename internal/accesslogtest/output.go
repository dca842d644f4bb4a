package accesslogtest

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// An output writes lines in order of time, or with some of them late, and
// counts what it writes.
type output struct {
	w       *bufio.Writer
	start   time.Time
	late    int64 // milliseconds; 0 = none is late
	rng     *rand.Rand
	waiting []lateLine // by the times they are due
	seen    map[string]struct{}
	first   int64 // whole seconds since start, of events
	last    int64
	maxLate int64
	truth   Truth
}

func newOutput(w io.Writer, c Config) *output {
	return &output{
		w:     bufio.NewWriterSize(w, 1<<16),
		start: c.Start,
		late:  c.Late.Milliseconds(),
		rng:   rand.New(rand.NewPCG(c.Seed, streamLate)),
		seen:  make(map[string]struct{}),
	}
}

// put writes the lines of b, which are sorted by time.
func (o *output) put(b *batch) error {
	for _, l := range b.lines {
		if err := o.release(l.at); err != nil {
			return err
		}
		text := b.buf[l.from:l.to]
		if o.late > 0 && o.rng.IntN(16) == 0 {
			by := 1000 * (1 + o.rng.Int64N(o.late/1000))
			o.postpone(lateLine{l.at + by, l, bytes.Clone(text)})
			continue
		}
		if err := o.write(l, text); err != nil {
			return err
		}
	}
	return nil
}

// postpone adds a late line after those that are due no later.
func (o *output) postpone(l lateLine) {
	at := sort.Search(len(o.waiting), func(i int) bool { return o.waiting[i].due > l.due })
	o.waiting = slices.Insert(o.waiting, at, l)
}

// release writes the late lines that are due at a time.
func (o *output) release(at int64) error {
	for len(o.waiting) > 0 && o.waiting[0].due <= at {
		l := o.waiting[0]
		o.waiting = o.waiting[1:]
		if err := o.write(l.line, l.text); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) flush() error {
	if err := o.release(1<<63 - 1); err != nil {
		return err
	}
	if len(o.seen) > 0 {
		o.truth.First = o.start.Add(time.Duration(o.first) * time.Second)
		o.truth.Last = o.start.Add(time.Duration(o.last) * time.Second)
	}
	o.truth.Clients = len(o.seen)
	o.truth.MaxLate = time.Duration(o.maxLate) * time.Second
	return o.w.Flush()
}

func (o *output) write(l line, text []byte) error {
	o.truth.Lines++
	o.truth.Bytes += int64(len(text))
	if l.event {
		o.count(l)
	} else {
		o.truth.Bad++
	}
	_, err := o.w.Write(text)
	return err
}

func (o *output) count(l line) {
	sec := l.at / 1000
	if len(o.seen) == 0 {
		o.first, o.last = sec, sec
	}
	if sec < o.last {
		o.truth.Late++
		o.maxLate = max(o.maxLate, o.last-sec)
	}
	o.first, o.last = min(o.first, sec), max(o.last, sec)
	o.seen[l.client] = struct{}{}
}

// A lateLine is written when the log has reached the time due.
type lateLine struct {
	due  int64
	line line
	text []byte
}
