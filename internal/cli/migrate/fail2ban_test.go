package migrate

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/lately-go/lately/match"
)

// A jail with maxretry m bans at the m-th failure in findtime, and the next ban is twice
// as long with bantime.increment.
func TestFail2banBansAtMaxretry(t *testing.T) {
	for m := 1; m <= 6; m++ {
		l := limiter(t, Fail2ban(jails(fmt.Sprintf("[a]\nenabled=true\nmaxretry=%d\nfindtime=10m\nbantime=1h\nbantime.increment=true\n", m)), ""))
		now := time.Unix(1_700_000_000, 0)
		var e match.Event
		e.SetString(match.Client, "192.0.2.1")
		e.SetNamedString("filter", "a")
		for round, length := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
			for hit := 1; hit <= m; hit++ {
				now = now.Add(time.Second)
				if d := l.TakeAt(now, &e, 1); d.Allowed != (hit < m) {
					t.Fatalf("maxretry %d, ban %d, failure %d: %+v", m, round+1, hit, d)
				} else if !d.Allowed && !d.BannedUntil.Equal(now.Add(length)) {
					t.Fatalf("maxretry %d, ban %d: until %v, want %v", m, round+1, d.BannedUntil.Sub(now), length)
				}
			}
			now = now.Add(length)
		}
	}
}

func TestFail2banTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"600": 10 * time.Minute, "10m": 10 * time.Minute, "1h 30m": 90 * time.Minute, "1h30m": 90 * time.Minute, "2 days": 48 * time.Hour,
		"1w": 168 * time.Hour, "1d12h": 36 * time.Hour, "3650d": maxTime,
	} {
		if got, ok := fail2banTime(text); !ok || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, bad := range []string{"", "-1", "0", "h", "1 fortnight", "1m x", "3651d", "99999999999999999999", "1mo", "%(x)s", "1.5h"} {
		if got, ok := fail2banTime(bad); ok {
			t.Errorf("%q: %v, want none", bad, got)
		}
	}
}

// Missing parts are named, and no jail is imported with a value of another file.
func TestFail2banNotes(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nenabled=true\n":                               "jail.local:2: [a]: not imported: maxretry: missing: must be in jail.conf or another file of jails",
		"x=1\n":                                             `jail.local:1: "x=1": must be a section or a setting of one`,
		"[a]\nenabled=maybe\n":                              `jail.local:2: [a]: enabled: "maybe": must be true or false`,
		"[a]\nenabled=true\nmaxretry=%(b)s\n":               "jail.local:3: [a]: not imported: maxretry: it names settings that no file has, or too many",
		"[a]\nenabled=true\nmaxretry=%(maxretry)s":          "jail.local:3: [a]: not imported: maxretry: it names settings that no file has, or too many",
		"[a]\nenabled=true\nmaxretry=%(x)s\nx=%(__name__)s": `jail.local:3: [a]: not imported: maxretry: "a": must be a number from 1 to 65536`,
		"[a]\nenabled=true\nmaxretry=" + strings.Repeat("%(x)s", 2000) + "\nx=": "jail.local:3: [a]: not imported: maxretry: it names settings that no file has, or too many",
		"[DEFAULT]\nmaxretry=0\n[a]\nenabled=true\n":                            `jail.local:2: [a]: not imported: maxretry: "0": must be a number from 1 to 65536`,
	} {
		r := Fail2ban(jails(text), "")
		found := false
		for _, n := range r.Notes {
			found = found || n.String() == want
		}
		if !found || strings.Contains(string(r.Rules), "\nbans:") {
			t.Errorf("%q: %v, want %s\n%s", text, r.Notes, want, r.Rules)
		}
	}
	// A later file overrides an earlier one.
	r := Fail2ban(overlay{jails("[a]\nenabled=true\nmaxretry=3\n"), fstest.MapFS{"jail.conf": {Data: []byte("[DEFAULT]\nbantime=10m\nfindtime=10m\nmaxretry=5\n[a]\n")}}}, "")
	if len(r.Notes) > 0 || !strings.Contains(string(r.Rules), "after: 2 hits in 10m, for: 10m, mode: shadow") {
		t.Errorf("%v\n%s", r.Notes, r.Rules)
	}
}

// unreadable is a directory in which one file or folder may not be read.
type unreadable struct {
	fs.FS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

// A file or folder that exists and may not be read is named: its settings are missing.
func TestUnreadableFile(t *testing.T) {
	files := fstest.MapFS{"jail.conf": {Data: []byte("[a]\n")}, "jail.d/b.conf": {Data: []byte("[b]\n")}}
	for _, name := range []string{"jail.local", "jail.d", "jail.d/b.conf"} {
		r := Fail2ban(unreadable{files, name}, "")
		if len(r.Notes) != 1 || r.Notes[0].String() != name+":1: permission denied: its settings are missing" {
			t.Errorf("%s: %v", name, r.Notes)
		}
	}
}
