package engine

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// startFlood returns an engine with a rule that bans users.
func startFlood(t *testing.T) *Engine {
	t.Helper()
	file := must.Get(rules.Parse("rules.yaml", []byte("version: 1\nbans: [{name: flood, key: user, after: 2 hits in 1m, for: 1h}]\n")))(t)
	e := must.Get(New(Config{Rules: file}))(t)
	t.Cleanup(e.Close)
	return e
}

// A ban that is ended by hand before its record was written is not written after the record of its end: otherwise it would
// hold again after a restart.
func TestUnbanBeforeTheRecord(t *testing.T) {
	path := t.TempDir()
	j := OpenJournal(t, path, nil)
	e := startFlood(t)
	c := e.Session()
	begin := func(user string) {
		for range 3 {
			ev := c.Event()
			ev.SetNamedString("user", user)
			must.Get(c.Check(ev, 1, Terms{}))(t)
		}
	}
	begin("eve") // without a journal: OnBan has yet to come to the lock
	begin("mallory")
	late := map[string]bool{}
	for r := range e.limiter.Bans().All() {
		late[r.Key[0]] = true
	}
	if !late["eve"] || !late["mallory"] {
		t.Fatal(late)
	}
	e.Bans().Journal(j)
	sub := e.Subscribe()
	defer sub.Close()
	for r := range e.limiter.Bans().All() {
		if r.Key[0] == "eve" {
			if n, err := e.Bans().Unban("flood", r.Key); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		e.bans.Began(r)
	}
	must.Do(t, j.Close())
	after := startFlood(t)
	OpenJournal(t, path, after.Restorer().Record)
	for user, want := range map[string]bool{"eve": false, "mallory": true} {
		if r, held, err := after.limiter.Bans().Get("flood", user); held != want || err != nil || held && time.Until(r.Until) < 50*time.Minute {
			t.Errorf("%s: %+v, %v, %v; want %v", user, r, held, err, want)
		}
	}
}

// A ban whose rule a reload removes before its record was written is in the journal all the
// same, as those that were written before the reload: after a restart with the rule it holds.
func TestReloadBeforeTheRecord(t *testing.T) {
	path := t.TempDir()
	j := OpenJournal(t, path, nil)
	e := startFlood(t)
	late := ratelimit.BanRecord{Rule: "flood", Key: []string{"mallory"}, Since: time.Now(), Until: time.Now().Add(time.Hour)}
	must.Do(t, e.limiter.Bans().Add(late))
	e.Bans().Journal(j)
	if changes, err := e.Replace(noRules(), true); err != nil || changes.BansDropped != 1 {
		t.Fatal(changes, err)
	}
	e.bans.Began(late)
	must.Do(t, j.Close())
	after := startFlood(t)
	OpenJournal(t, path, after.Restorer().Record)
	if r, held, err := after.limiter.Bans().Get("flood", "mallory"); !held || err != nil {
		t.Errorf("%+v, %v, %v; want the ban", r, held, err)
	}
}
