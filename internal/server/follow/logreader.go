package follow

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// A source is a log that is followed: a tail or a stream.
type source interface {
	reader() *logReader

	// refresh checks the state of the log at now.
	refresh(now time.Time)

	// begun reports whether the log was there so far.
	begun() bool

	// hasLines reports whether there may be lines to read.
	hasLines() bool

	// behind reports whether there are, or may come at once, lines that were written before now:
	// newer lines of other logs wait for them.
	behind() bool

	// readBlock passes on the events of the next lines. buf has blockSize bytes.
	readBlock(buf []byte, each func(*match.Event), now time.Time)

	// unreadBytes returns about how much was not read yet.
	unreadBytes() int64

	saved() savedLog
	resume(*savedLog)
	close()
}

// noEvent is the time of the newest event of a log without one.
const noEvent = math.MinInt64 / 2

// A logReader parses the lines of one log, and passes their events on.
type logReader struct {
	path   string           // or another name
	format accesslog.Format // unknown until it is found
	zone   *time.Location   // of times that name none
	log    *slog.Logger

	problem string    // why the log cannot be read
	known   bool      // the format is known, also that of lines inside lines
	newest  int64     // time of an event
	counted time.Time // events before it are not passed on, see Lost
	stats   api.FollowedLog

	caughtUp  bool // all was read at the last poll: lines that come now were just written
	zoneCheck zoneCheck
	clients   clientCheck

	lateness int64
	batches  chan *batch // free, of the Follower
	passed   func()      // is called between lines
}

// A linePlace is a place among the lines of a log, as of its last offset, in saved state.
type linePlace struct {
	Columns  string `json:"columns,omitempty"`  // the line that names the columns
	Begun    int    `json:"begun,omitempty"`    // events of the line at the place that were passed on
	Skipping bool   `json:"skipping,omitempty"` // the place is in a line that is too long
}

func (r *logReader) reader() *logReader { return r }

// complain logs why the log cannot be read, once.
func (r *logReader) complain(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == r.problem {
		return
	}
	r.problem = problem
	switch {
	case err == nil:
		r.log.Info("the log is there", "file", r.path)
	case errors.Is(err, fs.ErrNotExist):
		r.log.Warn("the log is not there: waiting for it", "file", r.path)
	default:
		r.log.Error("the log cannot be read", "file", r.path, "error", err)
	}
}

// passBlock passes on the events of data, whole lines that p parses, and calls advance with the
// passed lines. They are parsed on another core.
func (r *logReader) passBlock(p *lineParser, at *linePlace, data []byte, each func(*match.Event), advance func([]byte) error) (err error) {
	b := blockParser{lineParser: p, rest: data, skip: at.Begun, left: len(data)}
	now, newest := time.Now(), int64(math.MinInt64)
	for b := range b.parse(r.batches) {
		r.stats.Lines += b.lines
		r.stats.Skipped += b.skipped
		r.stats.Bad += b.bad
		at.Columns = cmp.Or(b.columns, at.Columns)
		for i := range b.n {
			newest = max(newest, b.events[i].Time.UnixNano())
			r.clients.look(&b.events[i])
			r.pass(&b.events[i], each, now)
		}
		err = errors.Join(err, advance(data[:b.size]))
		data, at.Begun = data[b.size:], b.begun
		r.batches <- b
		r.passed()
	}
	if newest > math.MinInt64 {
		r.checkZone(newest, now)
		r.checkClients()
	}
	return err
}

// pass passes on an event. One that is ahead of now has the time now: a wrong time in one
// line must not make all after it late.
func (r *logReader) pass(ev *match.Event, each func(*match.Event), now time.Time) {
	at := ev.Time.UnixNano()
	if limit := now.UnixNano(); at > limit {
		at, ev.Time = limit, now.UTC()
	}
	if r.newest-at > r.lateness {
		r.stats.Late++
	}
	r.newest = max(r.newest, at)
	if ev.Time.Before(r.counted) {
		return
	}
	eventfield.SetOrigin(ev, r.path, r.format.String())
	each(ev)
}

// readsOld reports whether the lines that were just read were written before a time: the next ones may be as old, as from a pipe
// that is slower than its reader.
func (r *logReader) readsOld(before, now time.Time) bool {
	return r.newest > noEvent && r.newest < before.UnixNano() && now.Sub(r.stats.LastLine) < time.Duration(r.lateness)
}

// parserFor returns the parser of lines that begin with data: p, if the format is known, or has just been
// found in data.
func (r *logReader) parserFor(p *lineParser, columns string, data []byte) *lineParser {
	if !r.known {
		named := r.format.String() != ""
		f, found := r.format, named
		if !named {
			f, found = accesslog.Detect(data)
		}
		if found {
			f, found = f.Inside(data)
		}
		switch {
		case found:
			nearest, either := f.EitherOrder(data, time.Now())
			if either && !named {
				f = nearest
			}
			r.format, r.known, p = f, true, nil
			r.log.Info("the format of the log is known", "file", r.path, "format", f.String())
			if either {
				r.log.Warn("the dates of the log may begin with the day or with the month: name the order after the file, as in FILE=text-dmy or FILE=text-mdy", "file", r.path, "taken", f.String())
			}
		case p == nil:
			r.log.Warn("the format of the log was not recognized, so its lines are bad: name it after the file, as in FILE=clf", "file", r.path)
		}
	}
	if p != nil && p.format == r.format { // otherwise its files of patterns have changed
		return p
	}
	p = newLineParser(r.format, r.zone)
	if columns != "" {
		p.Parse([]byte(columns), new(match.Event))
	}
	return p
}

// listen logs when a log falls silent, and when it has lines again.
func (r *logReader) listen(after time.Duration, now time.Time) {
	silent := after > 0 && now.Sub(r.stats.LastLine) > after
	if silent == r.stats.Silent {
		return
	}
	r.stats.Silent = silent
	if silent {
		r.log.Warn("the log is silent: does its program run, and write to this file?", "file", r.path, "last_line", r.stats.LastLine.UTC())
	} else {
		r.log.Info("the log has lines again", "file", r.path)
	}
}
