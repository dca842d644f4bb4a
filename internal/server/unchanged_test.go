//go:build unix

package server

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// TestUnchangedState writes no snapshot while the state is that of the last one, and a snapshot after each kind of change.
// Time is not a change, and neither are requests that only read.
func TestUnchangedState(t *testing.T) {
	c, log := following(t)
	c.SnapshotEvery = time.Hour
	now := time.Now().Truncate(time.Second)
	log.requests("192.0.2.1", now, 10)
	s, _ := started(t, c)
	caller := s.engine.Session()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	take := func(key string) error {
		must(caller.QueueTake("flood", 1, engine.Terms{}, key))
		for _, err := range caller.Decide() {
			return err
		}
		return nil
	}
	for i := range 1000 { // several keys in each table
		must(take(fmt.Sprint("client ", i)))
		must(caller.Add("requests", 1, fmt.Sprint("client ", i)))
	}
	for i := range 100 {
		_, err := s.engine.Bans().Ban("flood", []string{fmt.Sprint("banned ", i)}, time.Hour, "", "test")
		must(err)
	}
	eventually(t, "the log is read", func() bool { return requestsOf(t, s, "192.0.2.1") == 10 })
	saved := func(after string) {
		t.Helper()
		eventually(t, "the state stays as it is after "+after, func() bool {
			must(s.save())
			return s.unchanged()
		})
	}
	saved("the start")
	must(caller.QueueTake("flood", 1, engine.Terms{Peek: true}, "client 1"))
	for _, err := range caller.Decide() {
		must(err)
	}
	requestsOf(t, s, "client 1")
	if !s.unchanged() {
		t.Error("a request that only looks is a change")
	}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"a decision", func() error { return take("client 7") }},
		{"a decision about a new key", func() error { return take("new") }},
		{"an add", func() error { return caller.Add("requests", 1, "client 7") }},
		{"a ban", func() error {
			_, err := s.engine.Bans().Ban("flood", []string{"x"}, time.Hour, "", "test")
			return err
		}},
		{"an unban", func() error { _, err := s.engine.Bans().Unban("flood", []string{"x"}); return err }},
		{"a reset", func() error { return caller.Reset("flood", "client 7") }},
		{"a hot key", func() error { _, err := s.engine.Hot().Add("page", []string{"/x"}, time.Hour); return err }},
		{"a hot key that is removed", func() error { _, err := s.engine.Hot().Remove("page", []string{"/x"}); return err }},
		{"an ignored key", func() error { return s.engine.Hot().Ignore("page", []string{"/y"}, false) }},
		{"a line of the log", func() error {
			lines := s.logs.Stats()[0].Lines
			log.requests("192.0.2.1", now, 1)
			eventually(t, "the line is read", func() bool { return s.logs.Stats()[0].Lines > lines })
			return nil
		}},
	} {
		must(change.do())
		if s.unchanged() {
			t.Errorf("%s is not seen", change.what)
		}
		saved(change.what)
	} // a snapshot that is due is written only after a change
	for _, changed := range []bool{false, true, false} {
		if changed {
			must(caller.Add("requests", 1, "client 7"))
		}
		before, due := stateFile(t, c.Data), s.saved.Load()
		s.requestSnapshot()
		eventually(t, "the snapshot that is due is written or left out", func() bool { return s.saved.Load() > due })
		if written := !os.SameFile(stateFile(t, c.Data), before); written != changed {
			t.Errorf("a snapshot is written: %v, though there is a change: %v", written, changed)
		}
		saved("that")
	}
}

// stateFile returns the file of a data directory, which each snapshot replaces.
func stateFile(t *testing.T, data string) fs.FileInfo {
	t.Helper()
	info := must.Get(os.Stat(filepath.Join(data, "state")))(t)
	return info
}
