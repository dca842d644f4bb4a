package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/eventlist"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestFeedOfNoFollower has events wait for older ones when their follower ends for ever: they are judged.
func TestFeedOfNoFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(path, []byte("version: 1\ncounters:\n  requests: {key: client, spans: [24h]}\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(New(Config{RESP: Off, HTTP: Off, RulesFiles: []string{path}, RulesPoll: -1, Follow: []follow.Log{{Path: path + ".log"}}}, "", nil))(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		now := time.Now()
		feed := must.Get(s.feeds.Open(&api.FeedOpening{Feed: "web", Process: "p"}, now))(t)
		var ev match.Event
		ev.Set(match.Client, []byte("192.0.2.1"))
		batch := &api.FeedBatch{Feed: "web", Session: feed.Session, Number: 1, Events: eventlist.Append(nil, now, &ev), State: []byte("s"), Until: now.Add(-time.Second)}
		judge := func(*match.Event) { t.Error("an event newer than the end of its batch is judged") }
		must.Do(t, s.feeds.Judge(batch, now, func(*match.Event) {}, judge))
		count := func() uint64 {
			synctest.Wait()
			count, _, err := s.engine.Session().Count("requests", 24*time.Hour, "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			return count.Hi
		}
		time.Sleep(20 * time.Second)
		if n := count(); n != 0 {
			t.Errorf("%d events are judged while the follower may come back", n)
		}
		time.Sleep(20 * time.Second)
		if n := count(); n != 1 {
			t.Errorf("%d events are judged, want 1", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
