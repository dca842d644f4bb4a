package accesslogtest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// A Config says what log to write. Its zero value is a day of 100,000 lines. All logs
// begin on 2026-03-02 at 00:00:00 UTC.
type Config struct {
	// Seed chooses the log: same seed, same bytes.
	Seed uint64

	// Lines is the exact number of lines, dirty ones included.
	// Default 100,000; at most 1,000,000,000.
	Lines int

	// Duration is the time that the lines are spread over, in whole seconds. Default
	// 24 h; 1 s to 3660 days. The planted traffic shrinks with it.
	Duration time.Duration
}

const (
	maxLines    = 1_000_000_000
	maxDuration = 3660 * 24 * time.Hour
	maxClients  = 1 << 24
)

// start is the time at which all logs begin.
var start = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// withDefaults returns c with defaults filled in, or an error that names the
// field that is wrong.
func (c Config) withDefaults() (Config, error) {
	c.Lines = cmp.Or(c.Lines, 100_000)
	c.Duration = cmp.Or(c.Duration, 24*time.Hour)
	switch {
	case c.Lines < 1 || c.Lines > maxLines:
		return c, fmt.Errorf("accesslogtest: Lines: %d: must be 1 to %d", c.Lines, maxLines)
	case c.Duration < time.Second || c.Duration > maxDuration || c.Duration%time.Second != 0:
		return c, fmt.Errorf("accesslogtest: Duration: %v: must be whole seconds, 1s to %v", c.Duration, maxDuration)
	}
	return c, nil
}

// clients is the number of clients that the ordinary sessions are drawn from. Some
// may not appear.
func (c Config) clients() int { return min(max(50, c.Lines/60), maxClients) }

// Truth is the contents of a log that [Write] has written: what a correct reader counts
// and what a correct rule finds.
type Truth struct {
	// Lines is the number of lines, and Bad that of empty and cut ones.
	Lines, Bad int

	// Clients is the number of distinct clients of the other lines.
	Clients int

	// Crawler is a client that requests one page after the other, evenly,
	// from beginning to end.
	Crawler Burst

	// Flood is one client that repeats one request, evenly.
	Flood Burst

	// Crowd is several clients that do so together, in turn: each makes its
	// share of the lines, to within one.
	Crowd Burst

	// HotProduct is the sudden run on one path by many ordinary clients. It begins at its full rate and fades out: half of
	// its lines are in the first quarter of its time.
	HotProduct Burst
}

// A Burst is traffic that [Write] planted. It is zero if the log is too short for it.
type Burst struct {
	// Clients are the clients that make it, and that make no other line of
	// the log. It is nil for the hot product, whose clients are many.
	Clients []string

	// Path is what they all request, without query; empty for the crawler.
	// The hot product's Path is requested in the burst only.
	Path string

	// Begin and End bound the times of its lines: [Begin, End).
	Begin, End time.Time

	// Lines is the number of its lines. No line is bad.
	Lines int
}

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
