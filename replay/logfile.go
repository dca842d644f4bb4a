package replay

import (
	"cmp"
	"math"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/counting/ring"
)

// A logFile is one of the files of a run, and what was read of it.
type logFile struct {
	number int
	path   string
	origin string // of its events: the path, as in the field log

	// These belong to the reader until it has ended. A block has the format of its lines.

	format    accesslog.Format
	next      accesslog.Format // of the first line of the next block; see [accesslog.Format.After]
	firstLine []byte
	modified  time.Time // now for standard input
	problems  []error
	source    *source // nil before it is opened
	chunker   lineChunker
	hasLines  bool
	hasData   bool
	ended     bool
	queued    int // blocks

	// These belong to the goroutine that takes over the blocks.

	complete atomic.Int64 // the time before which all events have been taken over

	early   map[int]*parsed // blocks that came before their turn
	taken   int             // blocks
	undated []*parsed       // blocks that wait for the year of the first line
	held    []*parsed       // blocks that wait to be judged

	lines, skipped, bad int64
	unknown             bool // there are lines from before the format was known
	badLines            []BadLine
	whole               logSpan
	leftOut             int64
	events              int64
	grain               uint32 // of the times; 0 if there is none
	zoneless            bool   // there is an event whose time names no zone
	byClock             bool   // there is one whose year is that of the clock
	eitherOrder         bool   // its dates may begin with the day or the month
	years               int    // that the last dated line comes after the first one
	lastDated           time.Time
	assumed             int // year of the first line; 0 if it is not assumed

	newest      int64 // time of an event
	begun       bool  // there was an event
	first, last int64 // times of events, in the order of the file
	jumps       []Jump
	late        LateReport
}

func newLogFile(number int, path string) *logFile {
	l := &logFile{number: number, path: path, origin: path, early: make(map[int]*parsed), whole: noSpan, newest: math.MinInt64}
	l.complete.Store(math.MinInt64)
	if abs, err := filepath.Abs(path); err == nil && path != "-" {
		l.origin = abs
	}
	return l
}

// count counts the lines of a block, and gives them their numbers in the file.
func (l *logFile) count(b *parsed) {
	for _, bad := range b.badLines {
		bad.File, bad.Line = l.path, bad.Line+l.lines
		l.badLines = append(l.badLines, bad)
	}
	for i, line := range b.places {
		b.places[i] = position(l.number)<<positionBits + position(l.lines) + line
	}
	l.unknown = l.unknown || b.lines > 0 && b.format.String() == ""
	l.lines += b.lines
	l.skipped += b.skipped
	l.bad += b.bad
	l.leftOut += b.leftOut
	l.zoneless = l.zoneless || b.zoneless
	l.byClock = l.byClock || b.byClock
	if b.whole != noSpan || b.standIn != noSpan {
		if l.grain == 0 || b.grain < l.grain {
			l.grain = b.grain
		}
	}
}

// dated takes over the next block and returns those whose times have their year, if that
// of the first line without one is year, or if it is 0, as soon as an event with a year follows
// or the file has ended.
func (l *logFile) dated(b *parsed, year int) []*parsed {
	if !b.dated && len(l.undated) == 0 {
		l.whole.add(b.whole)
		return []*parsed{b}
	}
	if b.dated {
		if !l.lastDated.IsZero() {
			l.years = accesslog.YearsAfter(l.lastDated, b.first)
		}
		l.lastDated = b.last.AddDate(0, 0, l.years*accesslog.LeapYearDays)
	}
	b.after = l.years
	l.undated = append(l.undated, b)
	if year == 0 && l.assumed == 0 {
		next, ok := b.nextDated()
		if !ok && !b.end {
			return nil
		}
		if !ok {
			next = l.modified
		}
		l.assumed = yearOfFirst(l.undated, l.lastDated, next)
	}
	year = cmp.Or(year, l.assumed)
	blocks := l.undated
	l.undated = nil
	for _, b := range blocks {
		l.bad += b.date(year + b.after)
		l.whole.add(b.whole)
	}
	return blocks
}

// settle leaves out the events of a block that are not in the cut, or are late, and notes
// jumps in time. Blocks of a file are settled in their order.
func (s *stream) settle(l *logFile, b *parsed) {
	if b.span != s.span {
		l.leftOut += b.filter(func(t int64) (int64, bool) { return t, s.span.has(t) })
	}
	if r := int64(s.Resolution); r != 0 {
		for i, t := range b.times {
			b.times[i] = ring.FloorDiv(t, r) * r
		}
	}
	l.noteJumps(b.times)
	if s.Lateness > 0 {
		s.leaveOutLate(l, b)
	}
	l.events += int64(len(b.times))
	s.held += len(b.times)
}

// noteJumps notes steps of more than a day between neighbours.
func (l *logFile) noteJumps(times []int64) {
	if len(times) == 0 {
		return
	}
	if !l.begun {
		l.begun, l.first, l.last = true, times[0], times[0]
	}
	last := l.last
	for _, t := range times {
		if isJump(last, t) && len(l.jumps) < maxJumps {
			l.jumps = append(l.jumps, Jump{epoch(last), epoch(t)})
		}
		last = t
	}
	l.last = last
}

func isJump(from, to int64) bool {
	const day = int64(24 * time.Hour)
	d := to - from
	return d > day || d < -day
}

const second = uint32(time.Second)

// A line must have a time of these years: the times, and the differences of any two, are
// counted in nanoseconds.
const (
	firstYear, lastYear = 1900, 2149

	firstTime = -2208988800 // 1900-01-01T00:00:00Z
	endTime   = 5680281600  // 2150-01-01T00:00:00Z
)

func inRange(t time.Time) bool { return firstTime <= t.Unix() && t.Unix() < endTime }

// precisions returns the precision of a log's times, and that of the format in it whose
// times are the coarsest: the largest power of ten of a second, at most one second, of
// which all times are multiples. They depend on the times only, so a log of milliseconds
// that are all 0 has a precision of a second.
func (r *run) precisions() (finest, coarsest time.Duration) {
	grains := make(map[string]uint32) // by format
	for _, l := range r.logs {
		if l.grain > 0 {
			name := l.format.String()
			grains[name] = min(l.grain, cmp.Or(grains[name], second))
		}
	}
	finest, coarsest = time.Second, 1
	for _, grain := range grains {
		finest, coarsest = min(finest, time.Duration(grain)), max(coarsest, time.Duration(grain))
	}
	return finest, coarsest
}

// A LateReport lists events that were too late to be judged in order.
type LateReport struct {
	Events      int64       `json:"events"`
	MostSeconds float64     `json:"most_seconds"` // largest time by which an event was older than one before it
	First       []LateEvent `json:"first"`        // in the order of the files
}

// A LateEvent is an event that was omitted because it was late.
type LateEvent struct {
	File    string  `json:"file"`
	Line    int64   `json:"line"`
	T       Epoch   `json:"t"`
	Seconds float64 `json:"seconds"` // older than the newest event before it
}

// maxLate is how many late events are named.
const maxLate = 10

// leaveOutLate leaves out the late events of a block: those that are older than an earlier
// one of their file by more than the lateness. Those that are not are complete up to
// the newest time less the lateness.
func (s *stream) leaveOutLate(l *logFile, b *parsed) {
	lateness, event := int64(s.Lateness), -1
	b.filter(func(t int64) (int64, bool) {
		event++
		l.newest = max(l.newest, t)
		if l.newest-t <= lateness {
			return t, true
		}
		behind := time.Duration(l.newest - t).Seconds()
		l.late.Events++
		l.late.MostSeconds = max(l.late.MostSeconds, behind)
		if len(l.late.First) < maxLate {
			l.late.First = append(l.late.First, LateEvent{l.path, b.places[event].line(), epoch(t), behind})
		}
		return t, false
	})
	if len(b.times) > 0 {
		l.complete.Store(l.newest - lateness)
	}
}

// lateReport returns the late events of all files; nil without a lateness.
func (r *run) lateReport() *LateReport {
	if r.Lateness == 0 {
		return nil
	}
	all := &LateReport{First: []LateEvent{}}
	for _, l := range r.logs {
		all.Events += l.late.Events
		all.MostSeconds = max(all.MostSeconds, l.late.MostSeconds)
		for _, e := range l.late.First {
			if len(all.First) < maxLate {
				all.First = append(all.First, e)
			}
		}
	}
	return all
}
