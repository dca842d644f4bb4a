package follow

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/match"
)

// MaxFeedEvent is how many bytes an event of a batch may have, as eventlist writes it. With it, an event
// that waits fits a record of Save.
const MaxFeedEvent = 256 << 10

const (
	maxFeedName  = 255
	maxFeedState = 512 << 10
	maxFeedLogs  = 256
	maxFeedBytes = 64 << 20 // of the states and logs of all feeds

	// A feed without a message for feedSilence has a problem. After feedGone, it is not
	// listed any more, and its memory is free for others.
	feedSilence = 30 * time.Second
	feedGone    = 24 * time.Hour
)

// The errors of feeds. Others are about the arguments.
var (
	// ErrFeedClosed: the session is not the feed's current one; its follower must open it
	// again.
	ErrFeedClosed = errors.New("the feed is not open in this session: it must be opened")

	// ErrFeedTaken: another process has opened the feed since.
	ErrFeedTaken = errors.New("another process has opened the feed since: each must have a name of its own")

	// ErrFeedsFull: there is no memory for another feed.
	ErrFeedsFull = fmt.Errorf("the feeds have more than %d MiB of state", maxFeedBytes>>20)
)

// Feeds is how far followers on other machines have read their logs, at the server that they
// send the events to. It keeps the state of a follower with each batch of events, and those of them that wait
// for older ones, so that a snapshot has counted just the events up to there. A follower keeps nothing: after any
// failure it opens its feed, and goes on where that says. Make one with [NewFeeds]. It is safe for
// concurrent use.
type Feeds struct {
	began func()
	held  atomic.Int64 // bytes of the events that wait, of all feeds

	saving sync.RWMutex // read-locked while events are judged
	mu     sync.Mutex   // for what follows; locked after those of feeds
	feeds  map[string]*feed
	bytes  int
	lost   time.Time // as of Lost
}

// A feed is what a follower has sent.
type feed struct {
	judging          sync.Mutex // for what follows, and held while a batch is judged
	process, session string
	number           uint64 // of the last batch
	queue            queue  // events that wait
	event            match.Event
	counted          time.Time // events before it are left out, see Lost

	held atomic.Int64 // bytes of the events that wait, as in Feeds.held

	// For what follows one locks Feeds.mu, and judging as well to change the state.
	state []byte
	logs  []api.FollowedLog
	heard time.Time
	bytes int
}

// savedFeed is the state of a feed in a snapshot, or some of its events that wait.
type savedFeed struct {
	Name    string      `json:"name"` // "" if the record is about all feeds, and has Lost
	State   []byte      `json:"state,omitempty"`
	Counted time.Time   `json:"counted,omitzero"`
	Held    []heldEvent `json:"held,omitempty"`
	Lost    time.Time   `json:"lost,omitzero"` // as of Lost
}

// NewFeeds returns Feeds without a feed. began is called when a feed has its first state, which should
// then be saved.
func NewFeeds(began func()) *Feeds { return &Feeds{began: began, feeds: make(map[string]*feed)} }

// Open begins a session of a feed, and ends the previous one.
func (f *Feeds) Open(o *api.FeedOpening, now time.Time) (api.Feed, error) {
	switch {
	case o.Feed == "" || len(o.Feed) > maxFeedName:
		return api.Feed{}, fmt.Errorf("feed: %d bytes: must be 1 to %d", len(o.Feed), maxFeedName)
	case o.Process == "" || len(o.Process) > 64 || strings.ContainsFunc(o.Process, notAlphanumeric):
		return api.Feed{}, fmt.Errorf("process: %.64q: must be 1 to 64 letters and digits", o.Process)
	}
	x := f.feed(o.Feed, now, true)
	x.judging.Lock()
	defer x.judging.Unlock()
	if !f.resize(x, len(o.Feed)+len(x.state)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.feeds, o.Feed) // it is new: what it has had before has its memory
		return api.Feed{}, ErrFeedsFull
	}
	x.process, x.session, x.number = o.Process, o.Process+"."+rand.Text(), 0
	return api.Feed{Session: x.session, State: append([]byte{}, x.state...)}, nil
}

func notAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// feed returns the feed of that name, and sets the time of its last message to now. If there is none, it makes one
// if create is set, and otherwise returns nil.
func (f *Feeds) feed(name string, now time.Time, create bool) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.feeds[name]
	if x == nil && create {
		x = &feed{queue: newQueue(), counted: f.lost}
		f.feeds[name] = x
	}
	if x != nil {
		x.heard = now
	}
	return x
}

// resize makes the size of x n bytes and what each feed takes besides, and reports false if there
// is no memory for that even without the feeds that are gone.
func (f *Feeds) resize(x *feed, n int) bool {
	n += 1 << 10
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes-x.bytes+n > maxFeedBytes {
		maps.DeleteFunc(f.feeds, func(_ string, o *feed) bool {
			gone := x.heard.Sub(o.heard) > feedGone && o.held.Load() == 0
			if gone {
				f.bytes -= o.bytes
			}
			return gone
		})
	}
	if f.bytes-x.bytes+n > maxFeedBytes {
		return false
	}
	f.bytes, x.bytes = f.bytes-x.bytes+n, n
	return true
}

// Judge passes the events of a batch to judge, in order, and keeps its state, unless there is an
// error, in which case it does neither. read is called with each event before that, and before an event waits. No event has a time after now. If the batch has a time up to which
// events are judged, these are passed in the order of time, those of earlier batches among them, and the
// others wait.
func (f *Feeds) Judge(b *api.FeedBatch, now time.Time, read, judge func(*match.Event)) error {
	if err := checkBatch(b); err != nil {
		return err
	}
	f.saving.RLock()
	defer f.saving.RUnlock()
	x := f.feed(b.Feed, now, false)
	if x == nil {
		return ErrFeedClosed
	}
	x.judging.Lock()
	defer x.judging.Unlock()
	switch {
	case x.process != "" && !strings.HasPrefix(b.Session, x.process+"."):
		return ErrFeedTaken
	case x.session != b.Session || x.number+1 != b.Number:
		return ErrFeedClosed
	case !f.resize(x, len(b.Feed)+len(b.State)+sizeOfLogs(b.Logs)):
		return ErrFeedsFull
	}
	each := func(ev *match.Event) { f.hold(x, ev, judge) }
	if b.Until.IsZero() {
		each = judge
		f.release(x, math.MaxInt64, judge)
	}
	var r eventlist.Reader
	for rest, ok := r.Next(b.Events); ok; rest, ok = r.Next(rest) {
		if r.Event.Time.After(now) {
			r.Event.Time = now.UTC()
		}
		if r.Event.Time.Before(x.counted) {
			continue
		}
		read(&r.Event)
		each(&r.Event)
	}
	f.release(x, b.Until.UnixNano(), judge)
	first := x.state == nil
	f.mu.Lock()
	x.number, x.state, x.logs = b.Number, b.State, b.Logs
	f.mu.Unlock()
	if first {
		f.began()
	}
	return nil
}

// hold has ev wait, and passes on the oldest events of x if there are too many.
func (f *Feeds) hold(x *feed, ev *match.Event, judge func(*match.Event)) {
	x.queue.hold(ev)
	f.count(x)
	for x.queue.len() > 0 && (x.queue.full() || f.held.Load() > maxHeldBytes) {
		f.release(x, x.queue.events.Items()[0].At, judge)
	}
}

// release passes on the events of x that wait, up to a time.
func (f *Feeds) release(x *feed, upTo int64, judge func(*match.Event)) {
	x.queue.release(upTo, &x.event, judge)
	f.count(x)
}

// count counts the bytes of the events of x that wait.
func (f *Feeds) count(x *feed) {
	n := int64(x.queue.bytes)
	f.held.Add(n - x.held.Swap(n))
}

// Release passes on the events that wait for a follower without a message for half a minute: it may
// never come back.
func (f *Feeds) Release(now time.Time, judge func(*match.Event)) {
	f.saving.RLock()
	defer f.saving.RUnlock()
	var silent []*feed
	f.mu.Lock()
	for _, x := range f.feeds {
		if x.held.Load() > 0 && now.Sub(x.heard) > feedSilence {
			silent = append(silent, x)
		}
	}
	f.mu.Unlock()
	for _, x := range silent {
		x.judging.Lock()
		f.release(x, math.MaxInt64, judge)
		x.judging.Unlock()
	}
}

// checkBatch validates b, independent of its feed.
func checkBatch(b *api.FeedBatch) error {
	var r eventlist.Reader
	rest, n, size := b.Events, 0, 0
	for ok := true; ok && size <= MaxFeedEvent; n++ {
		before := len(rest)
		rest, ok = r.Next(rest)
		size = before - len(rest)
	}
	switch {
	case size > MaxFeedEvent:
		return fmt.Errorf("events: the event with index %d: %d bytes: must be at most %d", n-1, size, MaxFeedEvent)
	case len(rest) > 0:
		return fmt.Errorf("events: the event with index %d: must be whole", n-1)
	case len(b.State) == 0 || len(b.State) > maxFeedState:
		return fmt.Errorf("state: %d bytes: must be 1 to %d: follow fewer logs under one name", len(b.State), maxFeedState)
	case len(b.Logs) > maxFeedLogs:
		return fmt.Errorf("logs: %d: must be at most %d", len(b.Logs), maxFeedLogs)
	}
	return nil
}

func sizeOfLogs(logs []api.FollowedLog) (n int) {
	for i := range logs {
		n += 128 + len(logs[i].File) + len(logs[i].Problem)
	}
	return n
}

// Logs returns the logs of all feeds, as their followers see them. The name of the feed precedes
// the name of the file.
func (f *Feeds) Logs(now time.Time) (all []api.FollowedLog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.feeds)) {
		x := f.feeds[name]
		silent := now.Sub(x.heard)
		if silent > feedGone {
			continue
		}
		for _, log := range x.logs {
			log.File = name + ":" + log.File
			if silent > feedSilence {
				log.Problem = fmt.Sprintf("its follower was last heard of at %s", x.heard.UTC().Format(time.RFC3339))
			}
			all = append(all, log)
		}
	}
	return all
}

// Save calls save with the states of the feeds, as records of less than 1 MiB, while none of their
// events is judged.
func (f *Feeds) Save(save func(records [][]byte) error) error {
	f.saving.Lock()
	defer f.saving.Unlock()
	var parts []savedFeed
	f.mu.Lock()
	if !f.lost.IsZero() {
		parts = append(parts, savedFeed{Lost: f.lost})
	}
	for _, name := range slices.Sorted(maps.Keys(f.feeds)) {
		x := f.feeds[name]
		if x.state == nil {
			continue
		}
		parts = append(parts, savedFeed{Name: name, State: x.state, Counted: x.counted})
		for held := range x.queue.parts() {
			parts = append(parts, savedFeed{Name: name, Held: held})
		}
	}
	f.mu.Unlock()
	records, err := asRecords(parts)
	if err != nil {
		return err
	}
	return save(records)
}

// Restore restores a record of Save.
func (f *Feeds) Restore(record []byte, now time.Time) error {
	var saved savedFeed
	if err := json.Unmarshal(record, &saved); err != nil {
		return fmt.Errorf("follow: saved feed: %w", err)
	}
	if saved.Name == "" {
		f.Lost(saved.Lost)
		return nil
	}
	x := f.feed(saved.Name, now, true)
	x.queue.restore(saved.Held)
	f.count(x)
	if saved.State != nil {
		x.state, x.counted = saved.State, saved.Counted
	}
	f.resize(x, len(saved.Name)+len(x.state)) // it did fit when it was saved
	return nil
}

// Lost marks records of Save as lost. Call it after Restore of the others and before Open. Events before until are left out for
// feeds without a state: the state that is kept together with the records may include them.
func (f *Feeds) Lost(until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = until
	for _, x := range f.feeds {
		if x.state == nil {
			x.counted = until
		}
	}
}
