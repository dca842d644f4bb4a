package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// A fedServer is a server that counts the events of a schedule, and the network before it, which
// loses requests and answers, and repeats requests.
type fedServer struct {
	*schedule
	feeds   *Feeds
	process int
	batch   api.FeedBatch   // of the follower
	past    []api.FeedBatch // that were sent
	waiting int             // how often a server was saved while events waited

	flushing bool
	due      time.Time    // events up to here need not wait
	unsorted map[int]bool // lines that were read after that, or only half of them

	// Broken controls: it counts events of sessions that have ended, judges events in the order of their arrival, or does
	// not save waiting events.
	careless, hasty, forgetful bool
}

// newFed has a server count the events of s, with a random lateness.
func newFed(s *schedule) *fedServer {
	s.fed = &fedServer{schedule: s, feeds: NewFeeds(func() {}), unsorted: map[int]bool{}}
	s.lateness = time.Duration(s.rnd.IntN(6)) * time.Second
	return s.fed
}

// restart is a server that was killed: it has its saved state.
func (f *fedServer) restart() {
	f.note("the server is restarted")
	f.feeds = NewFeeds(func() {})
	for _, record := range f.saved {
		f.must(f.feeds.Restore(record, time.Now()))
	}
}

var errLost = errors.New("lost")

// connect opens the feed for a new follower.
func (f *fedServer) connect(c Config) (Config, [][]byte) {
	f.process++
	opened, err := f.feeds.Open(&api.FeedOpening{Feed: "web", Process: fmt.Sprint(f.process)}, time.Now())
	f.must(err)
	f.batch = api.FeedBatch{Feed: "web", Session: opened.Session, Number: 1}
	c.Judge = f.add
	c.Passed = f.passed
	if len(opened.State) == 0 {
		return c, nil
	}
	return c, [][]byte{opened.State}
}

// add adds an event to the batch.
func (f *fedServer) add(ev *match.Event) {
	f.batch.Events = eventlist.Append(f.batch.Events, ev.Time, ev)
	n, err := strconv.Atoi(string(ev.Get(match.Client)))
	if err == nil && (!ev.Time.After(f.due) || !ev.Time.Equal(f.times[n])) {
		f.unsorted[n] = true
	}
}

// passed sends the batch, over a network that fails.
func (f *fedServer) passed(p Point) (err error) {
	if p.More && !f.flushing && f.rnd.IntN(3) > 0 {
		return nil
	}
	f.batch.State, err = p.State()
	f.must(err)
	if f.batch.Until = p.Until(); f.hasty {
		f.batch.Until = time.Time{}
	}
	if due := f.now.Add(-f.lateness); !p.More && due.After(f.due) {
		f.due = due
	}
	b := f.batch
	f.past = append(f.past, b)
	k := f.rnd.IntN(12)
	if k == 0 {
		return errLost
	}
	if k == 1 { // a request of before arrives late
		f.rejected(f.past[f.rnd.IntN(len(f.past))], b)
	}
	f.must(f.judge(b))
	switch k {
	case 2:
		return errLost // the answer
	case 3:
		f.rejected(b, api.FeedBatch{})
	}
	f.batch.Number, f.batch.Events = b.Number+1, nil
	return nil
}

func (f *fedServer) judge(b api.FeedBatch) error {
	return f.feeds.Judge(&b, time.Now(), func(*match.Event) {}, f.schedule.judge)
}

// rejected sends a batch again, other than the next.
func (f *fedServer) rejected(b, next api.FeedBatch) {
	if b.Session == next.Session && b.Number == next.Number {
		return
	}
	if f.careless {
		var r eventlist.Reader
		for rest, ok := r.Next(b.Events); ok; rest, ok = r.Next(rest) {
			f.schedule.judge(&r.Event)
		}
		return
	}
	if err := f.judge(b); !errors.Is(err, ErrFeedClosed) && !errors.Is(err, ErrFeedTaken) {
		f.t.Fatalf("a batch that was sent before: %v", err)
	}
}

// flush has all events that were read be judged, by followers that begin again after failures.
func (f *fedServer) flush() {
	f.flushing = true
	for f.follower.passed(true, f.now); f.follower.failed != nil; f.follower.poll(f.t.Context(), f.now) {
		f.note("%v", f.follower.failed)
		f.follower.close()
		f.start()
	}
	f.flushing = false
}

// save saves what the server has.
func (f *fedServer) save(save func(records [][]byte) error) error {
	f.flush()
	return f.feeds.Save(func(records [][]byte) error {
		if len(records) > 1 {
			f.waiting++
		}
		if f.forgetful {
			records = records[:min(len(records), 1)]
		}
		return save(records)
	})
}

// compareOrder returns which events were not judged in the order of time.
func (f *fedServer) compareOrder() error {
	last := 0
	for _, n := range f.judged {
		switch {
		case f.unsorted[n]:
		case f.times[n].Before(f.times[last]):
			return fmt.Errorf("line %d (%v) is judged after line %d (%v), with a lateness of %v", n, f.times[n], last, f.times[last], f.lateness)
		default:
			last = n
		}
	}
	return nil
}

// TestFedSchedules has a server count the events that a follower sends, through rotations, kills of both
// and failures of the network: no line is lost or counted twice, and with a lateness they are judged in the order of
// time. The long form has 1,000 histories.
func TestFedSchedules(t *testing.T) {
	rnd := randtest.New(t)
	waiting, unsorted, lines := 0, 0, 0
	for round := range rounds(60) {
		s := newSchedule(t, rnd)
		f := newFed(s)
		if err := s.run(1 + rnd.IntN(40)); err != nil {
			t.Fatalf("history %d: %v\n%s", round, err, strings.Join(s.log, "\n"))
		}
		waiting, unsorted, lines = waiting+f.waiting, unsorted+len(f.unsorted), lines+s.lines
	}
	if waiting == 0 || unsorted > lines/2 {
		t.Errorf("%d servers were saved while events waited; the order of %d of %d lines is not tested", waiting, unsorted, lines)
	}
	t.Logf("%d servers were saved while events waited; the order of %d of %d lines is not tested", waiting, unsorted, lines)
}

// TestFedSchedulesCatchBrokenServers has servers with a fault. The model must notice.
func TestFedSchedulesCatchBrokenServers(t *testing.T) {
	for name, broken := range map[string]func(f *fedServer){
		"a batch is counted again":     func(f *fedServer) { f.careless = true },
		"events do not wait":           func(f *fedServer) { f.hasty = true },
		"waiting events are not saved": func(f *fedServer) { f.forgetful = true },
		"the state is not kept with the counts": func(f *fedServer) {
			f.tamper = func(state []byte) []byte {
				if n := len(f.past); n > 0 && f.rnd.IntN(2) == 0 {
					return f.past[n-1].State
				}
				return state
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			rnd := randtest.New(t)
			for range 200 {
				s := newSchedule(t, rnd)
				broken(newFed(s))
				if s.run(40) != nil {
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}

// TestPoints ends a follower at each point of a log whose lines have many events: another one that
// resumes there passes on the rest.
func TestPoints(t *testing.T) {
	format := must.Get(accesslog.ParseFormat("json:time=t@s,client=ip,object=keys[]"))(t)
	path := filepath.Join(t.TempDir(), "log")
	want := 0
	for _, n := range []int{1, 700, 256, 255, 3, 1} {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("k%d", want)
			want++
		}
		line := must.Get(json.Marshal(map[string]any{"t": 1700000000, "ip": "192.0.2.1", "keys": keys}))(t)
		write(t, path, string(line))
	}
	pass := func(from []byte, each func(*match.Event), passed func(Point) error) {
		t.Helper()
		f := must.Get(New(Config{Logs: []Log{{Path: path, Format: format}}, Judge: each, Passed: passed}))(t)
		if from != nil {
			must.Do(t, f.Resume(from))
		}
		f.poll(t.Context(), time.Now())
		f.close()
	}
	var got []string
	points := 0
	object := func(all *[]string) func(*match.Event) {
		return func(ev *match.Event) { *all = append(*all, string(ev.Get(match.Object))) }
	}
	pass(nil, object(&got), func(p Point) error {
		points++
		state, err := p.State()
		if err != nil {
			return err
		}
		all := append([]string(nil), got...)
		pass(state, object(&all), func(Point) error { return nil })
		for i, key := range all {
			if key != fmt.Sprintf("k%d", i) {
				t.Fatalf("at point %d, after %d events: event %d is %s", points, len(got), i, key)
			}
		}
		if len(all) != want && want > 0 {
			t.Fatalf("at point %d, after %d events: %d in all, want %d", points, len(got), len(all), want)
		}
		return nil
	})
	if points < 5 || len(got) != want {
		t.Errorf("%d points, %d events, want %d", points, len(got), want)
	}
}

// TestFeeds has followers that share a name, are restarted, or send what they must not.
func TestFeeds(t *testing.T) {
	began := 0
	f := NewFeeds(func() { began++ })
	now := time.Now()
	open := func(name, process string) api.Feed {
		t.Helper()
		feed := must.Get(f.Open(&api.FeedOpening{Feed: name, Process: process}, now))(t)
		return feed
	}
	var judged []time.Time
	judge := func(b api.FeedBatch) error {
		return f.Judge(&b, now, func(*match.Event) {}, func(ev *match.Event) { judged = append(judged, ev.Time) })
	}
	var ev match.Event
	ev.Set(match.Client, []byte("192.0.2.1"))
	past := now.Add(-time.Hour)
	events := eventlist.Append(eventlist.Append(nil, past, &ev), now.Add(time.Hour), &ev)
	a := open("web-1", "a")
	batch := api.FeedBatch{Feed: "web-1", Session: a.Session, Number: 1, Events: events, State: []byte("1"), Logs: []api.FollowedLog{{File: "/l", Lines: 2}}}
	if err := judge(batch); err != nil || len(judged) != 2 || !judged[0].Equal(past) || !judged[1].Equal(now) {
		t.Fatalf("%v, judged %v", err, judged)
	}
	for name, x := range map[string]struct {
		change func(b *api.FeedBatch)
		want   string
	}{
		"again":              {func(b *api.FeedBatch) { b.Number = 1 }, "must be opened"},
		"a gap":              {func(b *api.FeedBatch) { b.Number = 3 }, "must be opened"},
		"another feed":       {func(b *api.FeedBatch) { b.Feed = "web-2" }, "must be opened"},
		"another process":    {func(b *api.FeedBatch) { b.Session = "b.1" }, "another process"},
		"a long event":       {func(b *api.FeedBatch) { b.Events = longEvent(MaxFeedEvent) }, "index 0: 262158 bytes: must be at most 262144"},
		"half an event":      {func(b *api.FeedBatch) { b.Events = events[:len(events)-1] }, "index 1: must be whole"},
		"no state":           {func(b *api.FeedBatch) { b.State = nil }, "state: 0 bytes: must be 1 to"},
		"too long a state":   {func(b *api.FeedBatch) { b.State = make([]byte, maxFeedState+1) }, "follow fewer logs"},
		"too many logs":      {func(b *api.FeedBatch) { b.Logs = make([]api.FollowedLog, maxFeedLogs+1) }, "logs: 257: must be at most 256"},
		"an earlier session": {func(b *api.FeedBatch) { b.Session = a.Session + "x" }, "must be opened"},
	} {
		b := batch
		b.Number = 2
		x.change(&b)
		if err := judge(b); err == nil || !strings.Contains(err.Error(), x.want) || len(judged) != 2 {
			t.Errorf("%s: %v, and %d events are judged", name, err, len(judged))
		}
	}
	if logs := f.Logs(now); len(logs) != 1 || logs[0].File != "web-1:/l" || logs[0].Lines != 2 || logs[0].Problem != "" {
		t.Errorf("logs %+v", logs)
	}
	if logs := f.Logs(now.Add(time.Minute)); !strings.HasPrefix(logs[0].Problem, "its follower was last heard of at 2") {
		t.Errorf("logs %+v", logs)
	}
	if logs := f.Logs(now.Add(25 * time.Hour)); len(logs) > 0 {
		t.Errorf("logs %+v", logs)
	}

	// Another process goes on, and the first one is refused.
	b := open("web-1", "b")
	if batch.Number = 2; !errors.Is(judge(batch), ErrFeedTaken) || string(b.State) != "1" || began != 1 {
		t.Errorf("state %q, %d feeds began", b.State, began)
	}
	for _, o := range []api.FeedOpening{{Process: "a"}, {Feed: strings.Repeat("x", 256), Process: "a"}, {Feed: "a"}, {Feed: "a", Process: "a.b"}} {
		if _, err := f.Open(&o, now); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func longEvent(n int) []byte {
	var ev match.Event
	ev.SetNamed("x", make([]byte, n))
	return eventlist.Append(nil, time.Now(), &ev)
}

// A waitingFeed is a feed whose events wait. Each is named by the seconds of its time.
type waitingFeed struct {
	t       *testing.T
	feeds   *Feeds
	now     time.Time
	session string
	number  uint64
	judged  []int
}

func newWaitingFeed(t *testing.T) *waitingFeed {
	f := &waitingFeed{t: t, feeds: NewFeeds(func() {}), now: time.Unix(1700000000, 0)}
	f.open()
	return f
}

func (f *waitingFeed) open() {
	f.t.Helper()
	feed := must.Get(f.feeds.Open(&api.FeedOpening{Feed: "web", Process: "p"}, f.now))(f.t)
	f.session, f.number = feed.Session, 0
}

func (f *waitingFeed) judge(ev *match.Event) { f.judged = append(f.judged, int(ev.Time.Unix())) }

// send sends events of these seconds; those up to a second are judged, or all if it is negative.
func (f *waitingFeed) send(until int, seconds ...int) {
	f.t.Helper()
	f.number++
	b := &api.FeedBatch{Feed: "web", Session: f.session, Number: f.number, State: []byte("s")}
	if until >= 0 {
		b.Until = time.Unix(int64(until), 0)
	}
	for _, s := range seconds {
		b.Events = eventlist.Append(b.Events, time.Unix(int64(s), 0), new(match.Event))
	}
	must.Do(f.t, f.feeds.Judge(b, f.now, func(*match.Event) {}, f.judge))
}

// want compares the events that were judged since the last call.
func (f *waitingFeed) want(seconds ...int) {
	f.t.Helper()
	if !slices.Equal(f.judged, seconds) {
		f.t.Fatalf("judged %v, want %v", f.judged, seconds)
	}
	f.judged = nil
}

// TestFeedsWait has events wait for older ones, through a restart of the server, and no longer than their follower is
// connected.
func TestFeedsWait(t *testing.T) {
	f := newWaitingFeed(t)
	f.send(5, 7, 4, 9, 5, 6)
	f.want(4, 5)
	f.send(7, 3, 8)
	f.want(3, 6, 7)
	f.restart()
	f.send(8)
	f.want(8)
	f.send(-1, 12, 11) // without a lateness
	f.want(9, 12, 11)
	f.send(0, 13, 12)
	f.feeds.Release(f.now.Add(feedSilence), f.judge)
	f.want()
	f.feeds.Release(f.now.Add(feedSilence+1), f.judge)
	f.want(12, 13)
	if held := f.feeds.held.Load(); held != 0 {
		t.Errorf("%d bytes are counted for no event", held)
	}
}

// TestFeedsWaitInMemory has more events wait than there is memory for: the oldest are judged.
func TestFeedsWaitInMemory(t *testing.T) {
	f := newWaitingFeed(t)
	var want []int
	for s := range maxHeld + 100 {
		f.send(0, s)
		if s < 100 {
			want = append(want, s)
		}
	}
	f.want(want...)
	f.feeds.held.Add(maxHeldBytes) // of another feed
	f.send(0, maxHeld+100)
	if n := len(f.judged); n != maxHeld+1 {
		t.Errorf("%d events are judged, want %d", n, maxHeld+1)
	}
	if held := f.feeds.held.Load(); held != maxHeldBytes {
		t.Errorf("%d bytes are counted, want those of the other feed, %d", held, maxHeldBytes)
	}
}

// TestFeedsMemory has more feeds than fit in memory: only feeds that are gone are dropped.
func TestFeedsMemory(t *testing.T) {
	f := NewFeeds(func() {})
	now := time.Now()
	add := func(i int, now time.Time) error {
		name := fmt.Sprint(i)
		feed, err := f.Open(&api.FeedOpening{Feed: name, Process: "p"}, now)
		if err != nil {
			return err
		}
		b := &api.FeedBatch{Feed: name, Session: feed.Session, Number: 1, State: make([]byte, maxFeedState)}
		return f.Judge(b, now, func(*match.Event) {}, func(*match.Event) {})
	}
	most := maxFeedBytes / (maxFeedState + 1<<10 + 255)
	for i := range most {
		if err := add(i, now); err != nil {
			t.Fatal(i, err)
		}
	}
	for i := range 1000 {
		if err := add(most+1+i%10, now.Add(time.Hour)); !errors.Is(err, ErrFeedsFull) {
			t.Fatal(err)
		}
	}
	if len(f.feeds) > most+64 || f.bytes > maxFeedBytes {
		t.Errorf("%d feeds, %d bytes", len(f.feeds), f.bytes)
	}
	if err := add(most+1, now.Add(26*time.Hour)); err != nil || len(f.feeds) != 1 {
		t.Errorf("%v; %d feeds", err, len(f.feeds))
	}
}
