package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
)

// Config says which logs a [Follower] reads.
type Config struct {
	// Logs is the logs; at least one.
	Logs []Log

	// Lateness is how much older than the newest event of its log an event may be, and
	// still be passed on in the order of time; 0 means that events are passed on as they
	// are read.
	Lateness time.Duration

	// Silence is for how long a log may have no line until a warning is logged; 0 means
	// that there is none.
	Silence time.Duration

	// Judge takes the events, one at a time. An event and its values are valid until it
	// returns.
	Judge func(*match.Event)

	// Passed is called between lines, after some of them and after each poll, by the goroutine of
	// Run. It may wait; files are not read meanwhile. If it returns an error, Run ends with that, and
	// no more events are passed on. If Passed is set, events are passed on as they are read, even with Lateness, and
	// the receiver makes them wait, up to [Point.Until]. Without Lateness, those of several logs are in the order of
	// time from one block of lines to the next only. nil means nothing.
	Passed func(Point) error

	// Opened is called by Run when it has opened the first file of a log that was not there before: its
	// place should then be saved. nil means nothing.
	Opened func()

	// Log receives what happens to the files; nil discards it.
	Log *slog.Logger
}

// A Log is the path of a log, of a directory of logs, or a pattern of paths as of
// [filepath.Match].
type Log struct {
	Path   string
	Format accesslog.Format // the zero Format means that it is found from the lines
	Zone   *time.Location   // of times that name none; nil means time.Local
}

const (
	poll     = 100 * time.Millisecond // how often files are looked at
	discover = time.Second            // how often directories and patterns are read
	maxLate  = time.Hour

	// maxHeld and maxHeldBytes bound the events that wait for older ones. If there are more,
	// the oldest are passed on.
	maxHeld      = 1 << 16
	maxHeldBytes = 32 << 20
)

// A Follower follows logs. Make one with [New]. Run is called once; the other methods may be
// called meanwhile, by any goroutine.
type Follower struct {
	config Config
	log    *slog.Logger

	mu         sync.Mutex // held while a block is read, and its events are judged
	tails      []*tail
	discovered time.Time
	queue      queue
	event      match.Event // of the queue
	buf        []byte
	batches    chan *batch // free
	failed     error       // of Config.Passed

	stats atomic.Pointer[[]api.FollowedLog] // of the last look or block
}

// New returns a Follower. The error names the wrong field of c.
func New(c Config) (*Follower, error) {
	switch {
	case len(c.Logs) == 0:
		return nil, errors.New("follow: no log: must be at least one")
	case c.Lateness < 0 || c.Lateness > maxLate:
		return nil, fmt.Errorf("lateness: %v: must be 0s to %v", c.Lateness, maxLate)
	case c.Silence < 0:
		return nil, fmt.Errorf("silence: %v: must be more than 0s", c.Silence)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f := &Follower{config: c, log: c.Log, queue: newQueue(), buf: make([]byte, blockSize), batches: newBatches()}
	f.config.Logs = slices.Clone(c.Logs)
	for i := range f.config.Logs {
		l := &f.config.Logs[i]
		if l.Path == "" {
			return nil, errors.New("follow: an empty path: must be a file, a directory or a pattern")
		}
		path, err := filepath.Abs(l.Path)
		if err != nil {
			return nil, fmt.Errorf("follow: %s: %w", l.Path, err)
		}
		if _, err := filepath.Match(l.Path, ""); err != nil {
			return nil, fmt.Errorf("follow: %s: %w", l.Path, err)
		}
		l.Path = path
		if !l.many() {
			f.tail(l.Path, l)
		}
	}
	f.publish()
	return f, nil
}

// many reports whether l is not one file.
func (l *Log) many() bool {
	info, err := os.Stat(l.Path)
	return err == nil && info.IsDir() || err != nil && strings.ContainsAny(l.Path, "*?[")
}

// tail returns the log of that path, which begins to be followed if it is not yet.
func (f *Follower) tail(path string, l *Log) *tail {
	i := slices.IndexFunc(f.tails, func(t *tail) bool { return t.path == path })
	if i >= 0 {
		return f.tails[i]
	}
	t := &tail{path: path, format: l.Format, zone: cmp.Or(l.Zone, time.Local), log: f.log, batches: f.batches, newest: math.MinInt64 / 2, lateness: int64(f.config.Lateness)}
	t.passed = func() { f.passed(true, time.Time{}) }
	t.stats = api.FollowedLog{File: path, LastLine: time.Now()}
	f.tails = append(f.tails, t)
	return t
}

// Open opens the files that there are, after Resume. It reports whether one is the first of its log: save
// its place before Run reads a line, and it is found again after any rotation.
func (f *Follower) Open() (first bool) {
	first = f.refresh(time.Now())
	f.publish()
	return first
}

// Run follows the logs until ctx is done. It ends with the error of ctx, or of Config.Passed.
func (f *Follower) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer f.close()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		if f.poll(ctx, time.Now()); f.failed != nil {
			return f.failed
		}
		timer.Reset(poll)
	}
}

func (f *Follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tails {
		for _, g := range t.gens {
			g.close()
		}
	}
}

// poll reads what there is to read at now.
func (f *Follower) poll(ctx context.Context, now time.Time) {
	f.look(now)
	for ctx.Err() == nil && f.failed == nil && f.readNext(now) {
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() == nil {
		f.release(now.Add(-f.config.Lateness).UnixNano())
	}
	for _, t := range f.tails {
		t.caughtUp = t.unread() == nil
		t.listen(f.config.Silence, now)
	}
	f.publish()
	f.passed(false, now)
}

// look looks which files there are.
func (f *Follower) look(now time.Time) {
	if f.refresh(now) && f.config.Opened != nil {
		f.config.Opened()
	}
}

// refresh looks which files there are, and reports whether one is the first of its log.
func (f *Follower) refresh(now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.discovered) >= discover {
		f.discovered = now
		f.discover()
	}
	for _, t := range f.tails {
		had := t.latest != nil
		t.refresh(now)
		first = first || !had && t.latest != nil
	}
	return first
}

// readNext reads a block of the log that is behind the others, and reports whether there was
// one. Several logs with unread lines are passed on in the order of time.
func (f *Follower) readNext(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var next *tail
	behind := 0
	for _, t := range f.tails {
		if t.unread() == nil {
			continue
		}
		behind++
		if next == nil || t.newest < next.newest {
			next = t
		}
	}
	if next == nil {
		return false
	}
	each := f.config.Judge
	if f.config.Passed == nil && (behind > 1 || f.config.Lateness > 0) || f.queue.len() > 0 {
		each = f.hold
	}
	next.readBlock(f.buf, each, now)
	if f.queue.len() > 0 {
		f.release(f.ordered())
	}
	f.publish()
	return true
}

// ordered returns the time up to which events wait for none: they are older than all that is
// unread, but for the late.
func (f *Follower) ordered() int64 {
	newest, oldest := int64(math.MinInt64), int64(math.MaxInt64)
	for _, t := range f.tails {
		newest = max(newest, t.newest)
		if t.unread() != nil {
			oldest = min(oldest, t.newest)
		}
	}
	return min(oldest, newest) - int64(f.config.Lateness)
}

// hold has ev wait, and passes on the oldest events if there are too many.
func (f *Follower) hold(ev *match.Event) {
	f.queue.hold(ev)
	for f.queue.full() {
		f.release(f.queue.events.Items()[0].At)
	}
}

func (f *Follower) release(upTo int64) { f.queue.release(upTo, &f.event, f.config.Judge) }

// Stats returns what was read of each log since the start of the process, as of the last tenth of
// a second. It waits for nothing, also while the state is saved.
func (f *Follower) Stats() []api.FollowedLog { return slices.Clone(*f.stats.Load()) }

// publish makes the present numbers those of Stats.
func (f *Follower) publish() {
	logs := f.logs()
	f.stats.Store(&logs)
}

func (f *Follower) logs() []api.FollowedLog {
	all := make([]api.FollowedLog, 0, len(f.tails))
	for _, t := range f.tails {
		s := t.stats
		s.Problem = t.problem
		for _, g := range t.gens {
			if g.unpacked == nil {
				s.Unread += max(g.size-g.Offset, 0)
			}
		}
		if s.Unread > 0 && s.Lines > s.Bad+s.Skipped {
			s.Lag = api.MillisOf(max(time.Since(time.Unix(0, t.newest)), 0))
		}
		all = append(all, s)
	}
	return all
}

// listen logs when a log falls silent, and when it is heard again.
func (t *tail) listen(after time.Duration, now time.Time) {
	silent := after > 0 && now.Sub(t.stats.LastLine) > after
	if silent == t.stats.Silent {
		return
	}
	t.stats.Silent = silent
	if silent {
		t.log.Warn("the log is silent: does its program run, and write to this file?", "file", t.path, "last_line", t.stats.LastLine.UTC())
	} else {
		t.log.Info("the log has lines again", "file", t.path)
	}
}
