package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
)

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
	after  *logAfter
	log    *slog.Logger // of after: f.mu is locked when it is used

	wake chan struct{} // has a value when a stream has many lines

	mu           sync.Mutex // held while a block is read, and its events are judged
	tails        []*tail    // the logs in files
	streams      []source   // the others
	discovered   time.Time
	patternsRead time.Time
	patterns     map[string]*patternFiles // by the text of the format
	turn         int                      // of idle files, see rest
	lost         time.Time                // as of Lost
	queue        queue
	event        match.Event // of the queue
	buf          []byte
	batches      chan *batch // free
	failed       error       // of Config.Passed

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
	after := newLogAfter(c.Log)
	f := &Follower{config: c, after: after, log: slog.New(after), queue: newQueue(), patterns: map[string]*patternFiles{}, buf: make([]byte, blockSize), batches: newBatches(), wake: make(chan struct{}, 1)}
	f.config.Logs = slices.Clone(c.Logs)
	for i := range f.config.Logs {
		if err := f.add(&f.config.Logs[i]); err != nil {
			return nil, fmt.Errorf("follow: %w", err)
		}
	}
	f.publish()
	return f, nil
}

// add begins to follow l, and makes its path absolute.
func (f *Follower) add(l *Log) error {
	if l.Path == "" {
		return errors.New("an empty path: must be a file, a directory or a pattern")
	}
	if s, err := f.stream(l); s != nil || err != nil {
		if err == nil && f.source(s.reader().path) == nil {
			f.streams = append(f.streams, s)
		}
		return err
	}
	path, err := filepath.Abs(l.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	if _, err := filepath.Match(l.Path, ""); err != nil {
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	l.Path = path
	if !l.many() {
		f.tail(l.Path, l)
	}
	return nil
}

// stream returns the source of a log that is no regular file, or nil if l is one.
func (f *Follower) stream(l *Log) (source, error) {
	switch {
	case l.isStdin():
		return newStdin(f.newReader(l.Path, l), f.config.Stdin, f.wake)
	case l.isJournal():
		return newJournal(f.newReader(l.Path, l), f.wake)
	}
	if info, err := os.Stat(l.Path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		return nil, nil // it may come later
	}
	path, err := filepath.Abs(l.Path)
	l.Path = path
	return newFIFO(f.newReader(path, l), f.wake), err
}

// sources returns all logs.
func (f *Follower) sources() iter.Seq[source] {
	return func(yield func(source) bool) {
		for _, t := range f.tails {
			if !yield(t) {
				return
			}
		}
		for _, s := range f.streams {
			if !yield(s) {
				return
			}
		}
	}
}

// source returns the log of that path, or nil.
func (f *Follower) source(path string) source {
	for s := range f.sources() {
		if s.reader().path == path {
			return s
		}
	}
	return nil
}

// tail returns the log of that path, which begins to be followed if it is not yet.
func (f *Follower) tail(path string, l *Log) *tail {
	i := slices.IndexFunc(f.tails, func(t *tail) bool { return t.path == path })
	if i >= 0 {
		return f.tails[i]
	}
	t := &tail{logReader: f.newReader(path, l)}
	t.counted = f.lost
	f.tails = append(f.tails, t)
	return t
}

func (f *Follower) newReader(path string, l *Log) logReader {
	return logReader{
		path: path, format: l.Format, zone: cmp.Or(l.Zone, time.Local), log: f.log, batches: f.batches, newest: noEvent, lateness: int64(f.config.Lateness),
		passed: func() { f.passed(true, time.Time{}) }, stats: api.FollowedLog{File: path, LastLine: time.Now()},
	}
}

// Open opens the existing files, after Resume. It reports whether one is the first of its log: save
// its place before Run reads a line, and it is found again after any rotation.
func (f *Follower) Open() (first bool) {
	first = f.refresh(time.Now())
	f.publish()
	return first
}

// Run follows the logs until ctx is done. It ends with the error of ctx, or of Config.Passed; or with
// nil, if the only log is the standard input, and all of it was passed on.
func (f *Follower) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer f.close()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.wake:
			f.read(ctx, time.Now())
			continue
		case <-timer.C:
		}
		ended := f.ended()
		if f.poll(ctx, time.Now()); f.failed != nil {
			return f.failed
		}
		if ended && ctx.Err() == nil {
			return nil
		}
		timer.Reset(poll)
	}
}

// ended reports whether the only log is the standard input, and has ended: the next poll reads its last
// lines.
func (f *Follower) ended() bool {
	return !slices.ContainsFunc(f.config.Logs, func(l Log) bool { return !l.isStdin() }) && f.config.Stdin.ended()
}

func (f *Follower) close() {
	f.mu.Lock()
	defer f.unlock()
	for s := range f.sources() {
		s.close()
	}
}

// poll reads the lines that are available at now.
func (f *Follower) poll(ctx context.Context, now time.Time) {
	f.readPatterns(now)
	f.look(now)
	f.read(ctx, now)
	f.mu.Lock()
	defer f.unlock()
	if ctx.Err() == nil {
		f.release(f.until(now).UnixNano())
	}
	for s := range f.sources() {
		r := s.reader()
		r.caughtUp = !s.hasLines()
		r.listen(f.config.Silence, now)
	}
	f.publish()
	f.passed(false, now)
}

// until returns the time up to which no event waits any more at now, if there is no line to read.
func (f *Follower) until(now time.Time) time.Time {
	if f.ended() {
		return now.Add(maxLate) // events that wait are not later than the present
	}
	until := now.Add(-f.config.Lateness)
	waits := slices.ContainsFunc(f.streams, func(s source) bool { return s.reader().readsOld(until, now) })
	for s := range f.sources() {
		waits = waits || s.behind()
	}
	if waits {
		return time.Unix(0, min(until.UnixNano(), f.ordered()))
	}
	return until
}

// read reads all lines.
func (f *Follower) read(ctx context.Context, now time.Time) {
	for ctx.Err() == nil && f.failed == nil && f.readNext(now) {
	}
}

// look opens new files of the logs.
func (f *Follower) look(now time.Time) {
	if f.refresh(now) && f.config.Opened != nil {
		f.config.Opened()
	}
}

// refresh opens new files of the logs, and reports whether one is the first of its log.
func (f *Follower) refresh(now time.Time) (first bool) {
	f.mu.Lock()
	defer f.unlock()
	if now.Sub(f.discovered) >= discover {
		f.discovered = now
		f.discover()
	}
	f.rest(now)
	for s := range f.sources() {
		had := s.begun()
		s.refresh(now)
		first = first || !had && s.begun()
	}
	return first
}

const (
	// fewFiles is how many files are all looked at in each poll. If there are more, files without a
	// line for idleAfter are read in one poll of idleEvery: 1,000 files would take several percent
	// of a core.
	fewFiles  = 64
	idleAfter = time.Minute
	idleEvery = 10
)

// rest lets idle files rest in this poll, but for one of idleEvery.
func (f *Follower) rest(now time.Time) {
	f.turn++
	for i, t := range f.tails {
		t.rests = len(f.tails) > fewFiles && (f.turn+i)%idleEvery != 0 && t.idle(now)
	}
}

// readNext reads a block of the log that is behind the others, and reports whether there was
// one. Several logs with unread lines are passed on in the order of time.
func (f *Follower) readNext(now time.Time) bool {
	f.mu.Lock()
	defer f.unlock()
	var next source
	behind := 0
	for s := range f.sources() {
		if !s.behind() {
			continue
		}
		behind++
		if next == nil || s.reader().newest < next.reader().newest {
			next = s
		}
	}
	if next == nil || !next.hasLines() {
		return false
	}
	each := f.config.Judge
	if f.config.Passed == nil && (behind > 1 || f.config.Lateness > 0) || f.queue.len() > 0 {
		each = f.hold
	}
	if f.config.Read != nil {
		pass := each
		each = func(ev *match.Event) {
			f.config.Read(ev)
			pass(ev)
		}
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
	for s := range f.sources() {
		newest = max(newest, s.reader().newest)
		if s.behind() {
			oldest = min(oldest, s.reader().newest)
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

// Stats returns the counts of each log since the start of the process, as of the last tenth of a
// second. It waits for nothing, also while the state is saved.
func (f *Follower) Stats() []api.FollowedLog { return slices.Clone(*f.stats.Load()) }

// publish makes the present numbers those of Stats.
func (f *Follower) publish() {
	logs := f.logs()
	f.stats.Store(&logs)
}

func (f *Follower) logs() []api.FollowedLog {
	all := make([]api.FollowedLog, 0, len(f.tails)+len(f.streams))
	for source := range f.sources() {
		r := source.reader()
		s := r.stats
		s.Problem, s.Unread = r.problem, source.unreadBytes()
		if s.Unread > 0 && s.Lines > s.Bad+s.Skipped {
			s.Lag = api.MillisOf(max(time.Since(time.Unix(0, r.newest)), 0))
		}
		all = append(all, s)
	}
	return all
}
