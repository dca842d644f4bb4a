package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
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
var followed = form[follow.Log]{"FILE, or FILE=FORMAT with a format of `lately replay --formats`; - or journal:UNIT may be the FILE", func(s string) (follow.Log, bool) {
	for i := range s {
		if s[i] != '=' || journalMatch.MatchString(s[:i]) {
			continue
		}
		if format, ok := formatOf(s[i+1:]); ok {
			return follow.Log{Path: s[:i], Format: format}, i > 0
		}
	}
	return follow.Log{Path: s}, s != "" && (!strings.Contains(s, "=") || strings.HasPrefix(s, "journal:"))
}}

// followedLogs sets the logs to follow. If a file of patterns is wrong, the error says where.
func followedLogs(field *[]follow.Log) func([]string) error {
	set := list(field, followed)
	return func(texts []string) error {
		for _, text := range texts {
			i := strings.Index(text, "regex:")
			if i <= 0 || !strings.Contains(text[:i], "=") {
				continue
			}
			if _, err := accesslog.ParseFormat(text[i:]); err != nil {
				return err
			}
		}
		return set(texts)
	}
}

// journalMatch matches a part of the journal up to the '=' of a match, such as "_COMM=caddy": what comes after it
// is a value, also if it is the name of a format.
var journalMatch = regexp.MustCompile(`^journal:(.*,)?[A-Z_][A-Z0-9_]*$`)

// A LogZone is the zone of the times in a followed log, or in all, that name none.
type LogZone struct {
	File string // as in Follow; empty for all logs that are not named
	Zone *time.Location
}

// logZone is the form of a LogZone.
var logZone = form[LogZone]{"ZONE or FILE=ZONE, with a zone such as UTC, Europe/Vienna or +05:30", func(s string) (z LogZone, ok bool) {
	if i := strings.LastIndexByte(s, '='); i >= 0 {
		z.File, s = s[:i], s[i+1:]
		if z.File == "" {
			return z, false
		}
	}
	z.Zone, ok = zoneNamed(s)
	return z, ok
}}

// zoneNamed returns the zone of that name, or at that distance from UTC.
func zoneNamed(name string) (*time.Location, bool) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, ahead := t.Zone()
		return time.FixedZone(name, ahead), true
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil && name != ""
}

// ZonedLogs returns the logs to follow with their zones. The error names a zone that is for none of
// them.
func (c *Config) ZonedLogs() ([]follow.Log, error) {
	logs := slices.Clone(c.Follow)
	for _, z := range c.Zones {
		if z.File != "" && !slices.ContainsFunc(logs, func(l follow.Log) bool { return l.Path == z.File }) {
			return nil, fmt.Errorf("tz: %q: must be a log of follow", z.File)
		}
	}
	for i := range logs {
		l := &logs[i]
		for _, z := range c.Zones { // the last one that names the log, or else the last one that names none
			if z.File == l.Path || z.File == "" && !c.zoned(l.Path) {
				l.Zone = z.Zone
			}
		}
	}
	return logs, nil
}

// zoned reports whether a zone names the log.
func (c *Config) zoned(path string) bool {
	return slices.ContainsFunc(c.Zones, func(z LogZone) bool { return z.File == path })
}

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
	logs, err := s.config.ZonedLogs()
	if err != nil {
		return err
	}
	s.logs, err = follow.New(follow.Config{
		Logs: logs, Lateness: s.config.Lateness, Silence: s.config.Silence, Log: s.log, Read: s.engine.Session().Receive, Judge: s.judgeLogged(identity),
		Opened: s.requestSnapshot, Stdin: s.config.Stdin,
	})
	return err
}

// followLogs judges the events of the logs until ctx is done. The places of logs that are new are
// on disk before their first line is read: their files are found after a kill, also if they were rotated.
func (s *Server) followLogs(ctx context.Context) {
	if s.logs.Open() && s.journal != nil {
		_ = s.save() // the error is in the log
	}
	if err := s.logs.Run(ctx); err == nil && s.config.RESP == Off && s.config.HTTP == Off {
		s.log.Info("all of the standard input was judged: there is nothing else to do")
		s.Terminate()
	}
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

// restoring returns a function that restores the records of the data directory.
func (s *Server) restoring(r *engine.Restorer) func(journal.Record) error {
	seen := map[string]bool{} // types and places of the records that numbered returned
	return func(record journal.Record) error {
		if record.Type != recordFeed && record.Type != recordLogs {
			return r.Record(record)
		}
		if len(record.Data) < placeLen {
			return fmt.Errorf("record of type %q with %d bytes: must have %d or more", record.Type, len(record.Data), placeLen)
		}
		place, data := string(record.Type)+string(record.Data[:placeLen]), record.Data[placeLen:]
		if seen[place] {
			return nil
		}
		seen[place] = true
		switch {
		case record.Type == recordFeed:
			return s.feeds.Restore(data, time.Now())
		case s.logs == nil: // no log is followed any more
			return nil
		}
		return s.logs.Resume(data)
	}
}

// placesLost has logs and followers begin behind what the snapshot may have counted, if the disk has damaged all records of
// how far they were read.
func (s *Server) placesLost(found *journal.Found) {
	if found.Damaged == 0 && found.Missing == 0 || found.Snapshot+found.Appended == 0 {
		return
	}
	until := time.Now()
	if taken := found.Written.Add(snapshotMargin); !found.Written.IsZero() && taken.Before(until) {
		until = taken
	}
	s.feeds.Lost(until)
	if s.logs != nil {
		s.logs.Lost(until)
	}
}

// snapshotMargin is how long after its beginning a snapshot counts lines at most.
const snapshotMargin = 10 * time.Second

// placeLen is the length of the place of a record that numbered returns.
const placeLen = 4

// numbered returns records with their places among data.
func numbered(typ byte, data [][]byte) (records []journal.Record) {
	for i, b := range data {
		records = append(records, journal.Record{Type: typ, Data: append(binary.LittleEndian.AppendUint32(nil, uint32(i)), b...)})
	}
	return records
}

// saveLogs adds the state of the engine, and how far the logs were read: the state has counted
// just the lines up to there. The latter is added before and after the state: if the disk damages a
// record of it, no line counts twice. If it damages both, placesLost leaves out what may have been counted.
func (s *Server) saveLogs(now time.Time, add func(typ byte, data []byte) error) error {
	save := func(logs [][]byte) error {
		return s.feeds.Save(func(feeds [][]byte) error {
			positions := append(numbered(recordLogs, logs), numbered(recordFeed, feeds)...)
			if err := addAll(positions, add); err != nil {
				return err
			}
			if err := s.engine.Save(now, add); err != nil {
				return err
			}
			return addAll(positions, add)
		})
	}
	if s.logs == nil {
		return save(nil)
	}
	return s.logs.Save(save)
}

func addAll(records []journal.Record, add func(typ byte, data []byte) error) error {
	for _, r := range records {
		if err := add(r.Type, r.Data); err != nil {
			return err
		}
	}
	return nil
}
