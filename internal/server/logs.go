package server

import (
	"context"
	"strings"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
)

// The types of the records that say how far the logs were read, here and by followers on other
// machines. Those of the engine have other types.
const (
	recordLogs = 'f'
	recordFeed = 'F'
)

// followed is the form of a log to follow. A path that has a '=' needs a format.
var followed = form[follow.Log]{"FILE, or FILE=FORMAT with a format of `lately replay --formats`", func(s string) (follow.Log, bool) {
	for i := range s {
		if s[i] != '=' {
			continue
		}
		if format, ok := formatOf(s[i+1:]); ok {
			return follow.Log{Path: s[:i], Format: format}, i > 0
		}
	}
	return follow.Log{Path: s}, s != "" && !strings.Contains(s, "=")
}}

// formatOf returns the format of that name or spec; auto is the zero Format.
func formatOf(name string) (format accesslog.Format, ok bool) {
	if name == "auto" {
		return format, true
	}
	format, err := accesslog.ParseFormat(name)
	return format, err == nil
}

// openLogs makes what judges the events of logs, and the follower, if there is a log to follow.
func (s *Server) openLogs() error {
	identity, err := latelyhttp.NewIdentity(latelyhttp.IdentityConfig{TrustedProxies: s.config.TrustedProxies})
	if err != nil {
		return err
	}
	s.judgeWaiting = s.judgeLogged(identity)
	if len(s.config.Follow) == 0 {
		return nil
	}
	s.logs, err = follow.New(follow.Config{
		Logs: s.config.Follow, Lateness: s.config.Lateness, Silence: s.config.Silence, Log: s.log, Judge: s.judgeLogged(identity),
		Opened: s.requestSnapshot,
	})
	return err
}

// followLogs judges the events of the logs until ctx is done. The places of logs that are new are
// on disk before their first line is read: their files are found after a kill, also if they were rotated.
func (s *Server) followLogs(ctx context.Context) {
	if s.logs.Open() && s.dir != nil {
		_ = s.save() // the error is in the log
	}
	_ = s.logs.Run(ctx) // which ends when ctx does
}

// judgeLogged returns a function, for one goroutine, that judges the events of logs.
func (s *Server) judgeLogged(identity *latelyhttp.Identity) func(*match.Event) {
	session := s.engine.Session()
	return func(ev *match.Event) {
		if len(s.config.TrustedProxies) > 0 {
			identity.SetClient(ev)
		}
		d := session.CheckLogged(ev)
		if s.config.Decided != nil {
			s.config.Decided(ev, d)
		}
	}
}

// releaseEvery is how often events are looked for that wait for followers that do not come back.
const releaseEvery = 5 * time.Second

// keepReleasing judges the events that wait for followers that do not come back, until ctx is done.
func (s *Server) keepReleasing(ctx context.Context) {
	for now := range wait.Every(ctx, releaseEvery) {
		s.feeds.Release(now, s.judgeWaiting)
	}
}

// restoring returns a function that restores the records of a snapshot.
func (s *Server) restoring(r *engine.Restorer) func(journal.Record) error {
	return func(record journal.Record) error {
		switch {
		case record.Type == recordFeed:
			return s.feeds.Restore(record.Data, time.Now())
		case record.Type != recordLogs:
			return r.Record(record)
		case s.logs == nil: // no log is followed any more
			return nil
		}
		return s.logs.Resume(record.Data)
	}
}

// saveLogs adds the state of the engine, and how far the logs were read: the state has counted
// just the lines up to there.
func (s *Server) saveLogs(now time.Time, add func(typ byte, data []byte) error) error {
	save := func(feeds [][]byte) error {
		for _, record := range feeds {
			if err := add(recordFeed, record); err != nil {
				return err
			}
		}
		return s.engine.Save(now, add)
	}
	if s.logs == nil {
		return s.feeds.Save(save)
	}
	return s.logs.Save(func(logs [][]byte) error {
		for _, record := range logs {
			if err := add(recordLogs, record); err != nil {
				return err
			}
		}
		return s.feeds.Save(save)
	})
}
