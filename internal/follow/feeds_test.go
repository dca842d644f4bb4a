package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/eventlist"
	"github.com/lately-go/lately/internal/randtest"
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

	careless bool // a broken control: it counts what is sent in sessions that have ended
}

func newFed(s *schedule) *fedServer {
	s.fed = &fedServer{schedule: s, feeds: NewFeeds(func() {})}
	return s.fed
}

// restart is a server that was killed: it has what it has saved.
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
	c.Judge = func(ev *match.Event) { f.batch.Events = eventlist.Append(f.batch.Events, ev.Time, ev) }
	c.Passed = f.passed
	if len(opened.State) == 0 {
		return c, nil
	}
	return c, [][]byte{opened.State}
}

// passed sends the batch, over a network that fails.
func (f *fedServer) passed(p Point) (err error) {
	if p.More && f.rnd.IntN(3) > 0 {
		return nil
	}
	f.batch.State, err = p.State()
	f.must(err)
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
	return f.feeds.Judge(&b, time.Now(), func(ev *match.Event) error {
		f.schedule.judge(ev)
		return nil
	})
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
	for f.follower.passed(false); f.follower.failed != nil; f.follower.poll(f.t.Context(), f.now) {
		f.note("%v", f.follower.failed)
		f.follower.close()
		f.start()
	}
}

// TestFedSchedules has a server count the events that a follower sends, through rotations, kills of both
// and failures of the network: no line is lost or counted twice. The long form has 1,000 histories.
func TestFedSchedules(t *testing.T) {
	rnd := randtest.New(t)
	for round := range rounds(60) {
		s := newSchedule(t, rnd)
		newFed(s)
		if err := s.run(1 + rnd.IntN(40)); err != nil {
			t.Fatalf("history %d: %v\n%s", round, err, strings.Join(s.log, "\n"))
		}
	}
}

// TestFedSchedulesCatchBrokenServers has servers with a fault. The model must notice.
func TestFedSchedulesCatchBrokenServers(t *testing.T) {
	for name, broken := range map[string]func(f *fedServer){
		"a batch is counted again": func(f *fedServer) { f.careless = true },
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
	format, err := accesslog.ParseFormat("json:time=t@s,client=ip,object=keys[]")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	want := 0
	for _, n := range []int{1, 700, 256, 255, 3, 1} {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("k%d", want)
			want++
		}
		line, err := json.Marshal(map[string]any{"t": 1700000000, "ip": "192.0.2.1", "keys": keys})
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(line))
	}
	pass := func(from []byte, each func(*match.Event), passed func(Point) error) {
		t.Helper()
		f, err := New(Config{Logs: []Log{{Path: path, Format: format}}, Judge: each, Passed: passed})
		if err != nil {
			t.Fatal(err)
		}
		if from != nil {
			if err := f.Resume(from); err != nil {
				t.Fatal(err)
			}
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
		feed, err := f.Open(&api.FeedOpening{Feed: name, Process: process}, now)
		if err != nil {
			t.Fatal(err)
		}
		return feed
	}
	var judged []time.Time
	judge := func(b api.FeedBatch) error {
		return f.Judge(&b, now, func(ev *match.Event) error {
			judged = append(judged, ev.Time)
			return nil
		})
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

	// Another process goes on, and the first one learns it.
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

// TestFeedsMemory has more feeds than there is memory for: those that are gone give theirs, and no other.
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
		return f.Judge(b, now, func(*match.Event) error { return nil })
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
