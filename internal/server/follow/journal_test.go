package follow

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/journaltest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

func TestMain(m *testing.M) {
	journaltest.Main()
	goleak.VerifyTestMain(m)
}

// failed returns the line that sshd logs for a failed login of user.
func failed(user string) string {
	return "Failed password for " + user + " from 192.0.2.1 port 4711 ssh2"
}

// newJournalReader follows journals, and keeps the users whose logins fail.
func newJournalReader(t *testing.T, names ...string) *testReader {
	t.Helper()
	r := &testReader{t: t, now: time.Now()}
	c := Config{
		Judge: func(ev *match.Event) { r.names = append(r.names, string(ev.Get(match.User))) },
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, name := range names {
		c.Logs = append(c.Logs, Log{Path: name})
	}
	r.Follower = must.Get(New(c))(t)
	t.Cleanup(r.close)
	return r
}

// save returns what r saves.
func (r *testReader) save() (saved [][]byte) {
	r.t.Helper()
	must.Do(r.t, r.Save(func(records [][]byte) error {
		for _, record := range records {
			saved = append(saved, bytes.Clone(record))
		}
		return nil
	}))
	return saved
}

// next returns a reader that goes on where r was when it was killed after it saved its state.
func (r *testReader) next(name string) *testReader {
	r.t.Helper()
	saved := r.save()
	r.close()
	n := newJournalReader(r.t, name)
	n.resume(saved)
	return n
}

// TestJournal reads the journal from a day ago on, and goes on after journalctl or the process was killed.
func TestJournal(t *testing.T) {
	j := journaltest.New(t)
	at := time.Now().Add(-time.Minute)
	add := func(users ...string) {
		for _, user := range users {
			j.Add(at, "sshd", failed(user))
		}
	}
	j.Add(at.Add(-25*time.Hour), "sshd", failed("old"))
	r := newJournalReader(t, "journal")
	if !r.refresh(r.now) {
		t.Error("the place where it begins is not to be saved")
	}
	add("a", "b")
	r.eventually("a", "b")
	j.Kill()
	add("c")
	r.eventually("c")
	add("d")
	r.eventually("d")
	r = r.next("journal")
	add("e")
	r.eventually("e")
	if s := r.Stats()[0]; s.File != "journal" || s.Gaps != 0 || s.Lines != 1 || s.Problem != "" {
		t.Errorf("%+v", s)
	}
	starts := j.Starts()
	if len(starts) != 3 || !strings.Contains(starts[0], "--since=@") || !strings.Contains(starts[1], "--cursor=s=f00;i=3;") || !strings.Contains(starts[2], "--cursor=s=f00;i=5;") {
		t.Errorf("journalctl was started with %q", starts)
	}

	// The entry of the cursor is deleted, and one after it.
	saved := r.save()
	r.close()
	add("f", "g")
	j.Vacuum(1)
	r = newJournalReader(t, "journal")
	r.resume(saved)
	r.eventually("g")
	if s := r.Stats()[0]; s.Gaps != 1 {
		t.Errorf("%+v, want a gap", s)
	}
}

// TestJournalParts reads parts of the journal, each as a log.
func TestJournalParts(t *testing.T) {
	j := journaltest.New(t)
	at := time.Now().Add(-time.Minute)
	j.Add(at, "sshd", failed("a"))
	j.Add(at, "cron", "a job")
	j.Add(at, "nginx", `192.0.2.1 - b [`+at.Format("02/Jan/2006:15:04:05 -0700")+`] "GET / HTTP/1.1" 200 5`)
	whole, part := newJournalReader(t, "journal"), newJournalReader(t, "journal:sshd.service,sshd")
	whole.eventually("a")
	part.eventually("a")
	if lines := part.Stats()[0].Lines; lines != 1 {
		t.Errorf("%d lines are read, want 1", lines)
	}
	patterns := filepath.Join(t.TempDir(), "ssh.regex")
	must.Do(t, os.WriteFile(patterns, []byte(`match ^gate sshd\[812\]: Failed password for (?P<user>\S+) from <HOST>`), 0o600))
	formats := map[string]string{"journal:_SYSTEMD_UNIT=nginx.service": "clf", "journal:sshd.service,sshd": "regex:" + patterns}
	var c Config
	for path, format := range formats {
		c.Logs = append(c.Logs, Log{Path: path, Format: must.Get(accesslog.ParseFormat(format))(t)})
	}
	users := map[string]bool{}
	c.Judge = func(ev *match.Event) { users[string(ev.Get(match.User))] = true }
	f := must.Get(New(c))(t)
	defer f.close()
	for end := time.Now().Add(time.Minute); len(users) < len(formats) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.poll(t.Context(), time.Now())
	}
	if !users["a"] || !users["b"] || len(users) != len(formats) {
		t.Errorf("the users are %v, want a by patterns, and b", users)
	}
}

// TestJournalArgs reads the names of parts of the journal.
func TestJournalArgs(t *testing.T) {
	for name, want := range map[string]string{
		"journal":                            "",
		"journal:sshd":                       "--identifier=sshd --identifier=sshd-session --identifier=sshd-auth",
		"journal:ssh.service,dovecot":        "--unit=ssh.service --identifier=dovecot",
		"journal:_SYSTEMD_UNIT=ssh.service":  "_SYSTEMD_UNIT=ssh.service",
		"journal:_COMM=a,_COMM=b,PRIORITY=4": "_COMM=a _COMM=b PRIORITY=4",
		"journal:_COMM=a,+,_UID=0":           "_COMM=a + _UID=0",
	} {
		if args, err := journalArgs(name); err != nil || strings.Join(args, " ") != want {
			t.Errorf("%s: %q, %v", name, args, err)
		}
	}
	for _, name := range []string{"journal:", "journal:a,", "journal:comm=x", "journal:_COMM=", "journal:a b"} {
		if args, err := journalArgs(name); err == nil || !strings.Contains(err.Error(), "must be a unit such as") {
			t.Errorf("%s: %q, %v", name, args, err)
		}
	}
}

// TestJournalFails reports what keeps journalctl from reading, until it works.
func TestJournalFails(t *testing.T) {
	j := journaltest.New(t)
	const hint = "Hint: You are currently not seeing messages from other users and the system."
	j.Complain("No journal files were opened due to insufficient permissions.\n", true)
	r := newJournalReader(t, "journal")
	problem := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			r.now = r.now.Add(discover)
			r.poll(context.Background(), r.now)
			if p := r.Stats()[0].Problem; (p == "") == (want == "") && strings.Contains(p, want) {
				return
			}
		}
		t.Errorf("the problem is %q, want %q", r.Stats()[0].Problem, want)
	}
	problem("journalctl has ended, and is started again: No journal files were opened due to insufficient permissions.\nexit status 1")
	j.Complain(hint+"\n      Pass -q to turn off this notice.\n", false)
	problem(hint)
	j.Add(time.Now(), "sshd", failed("a"))
	r.eventually("a")
	problem(hint) // it sees some entries only
	j.Complain("No journal files were found.\n", false)
	j.Kill()
	problem("No journal files were found.")
	j.Add(time.Now(), "sshd", failed("b"))
	r.eventually("b")
	problem("")

	t.Setenv("PATH", t.TempDir())
	if _, err := New(Config{Logs: []Log{{Path: "journal"}}}); err == nil || !strings.Contains(err.Error(), "must be installed, with systemd") {
		t.Error(err)
	}
}

// TestJournalSchedule kills journalctl and the follower at random moments: each entry is passed on once. If the saved state
// has a cursor that is older or newer than the counted entries, that is found.
func TestJournalSchedule(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 20
	if !testing.Short() {
		rounds = 100
	}
	for name, tamper := range map[string]func(j *journal, cursor string){
		"":              nil,
		"without skip":  func(j *journal, _ string) { j.resumed = false },
		"older cursors": func(j *journal, cursor string) { j.place.Cursor = cursor },
	} {
		source := journaltest.New(t)
		var want, got []string
		r := newJournalReader(t, "journal:sshd")
		first := ""
		poll := func(atLeast int) {
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				r.now = r.now.Add(discover)
				r.poll(t.Context(), r.now)
				got, r.names = append(got, r.names...), nil
				log := r.streams[0].(*journal)
				if first = cmp.Or(first, log.place.Cursor); tamper != nil && first != "" {
					tamper(log, first)
				}
				if len(got) >= atLeast || time.Now().After(end) {
					return
				}
			}
		}
		for range rounds {
			for range rnd.IntN(5) {
				user := fmt.Sprintf("user%d", len(want))
				want = append(want, user)
				source.Add(time.Now(), "sshd", failed(user))
				source.Add(time.Now(), "cron", "x")
			}
			poll(rnd.IntN(2) * len(want))
			switch rnd.IntN(4) {
			case 0:
				source.Kill()
			case 1:
				r = r.next("journal:sshd")
			}
		}
		poll(len(want))
		r.close()
		if slices.Equal(got, want) != (tamper == nil) {
			t.Errorf("%q: %d entries are passed on, want %d: %q", name, len(got), len(want), got)
		}
	}
}

// TestJournalReal reads a journal that systemd-journal-remote writes, with the journalctl of the machine.
func TestJournalReal(t *testing.T) {
	journalctl, err := exec.LookPath("journalctl")
	if err != nil {
		t.Skipf("SKIP the journal of systemd: %v", err)
	}
	writer := "/usr/lib/systemd/systemd-journal-remote"
	if path := os.Getenv("JOURNAL_REMOTE"); path != "" {
		writer = path
	}
	if _, err := os.Stat(writer); err != nil {
		t.Skipf("SKIP the journal of systemd: there is no systemd-journal-remote to write one: %v", err)
	}
	dir := t.TempDir()
	n := 0
	add := func(users ...string) {
		t.Helper()
		var text strings.Builder
		for _, user := range users {
			n++
			fmt.Fprintf(&text, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%032x\nSYSLOG_IDENTIFIER=sshd\nMESSAGE=%s\n\n", time.Now().UnixMicro(), n, 1, failed(user))
		}
		export := filepath.Join(dir, "export")
		must.Do(t, os.WriteFile(export, []byte(text.String()), 0o600))
		if out, err := exec.Command(writer, "-o", filepath.Join(dir, "system.journal"), export).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "journalctl"), []byte("#!/bin/sh\nexec "+journalctl+" --directory="+dir+" \"$@\"\n"), 0o700))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	add("a", "b")
	r := newJournalReader(t, "journal:sshd")
	r.eventually("a", "b")
	add("c")
	r.eventually("c")
	r = r.next("journal:sshd")
	add("d", "e")
	r.eventually("d", "e")
	must.Do(t, r.streams[0].(*journal).cmd.Process.Kill())
	add("f")
	r.eventually("f")
	if s := r.Stats()[0]; s.Gaps != 0 || s.Lines != 3 {
		t.Errorf("%+v", s)
	}
}

// TestJournalOrder reads a file and the journal in the order of time, although journalctl takes a while to start.
func TestJournalOrder(t *testing.T) {
	j := journaltest.New(t)
	path := filepath.Join(t.TempDir(), "log")
	format := must.Get(accesslog.ParseFormat("csv:time=1@s,user=2"))(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	for second := range 5 {
		write(t, path, fmt.Sprintf("%d,file%d", at.Unix()+int64(second), second))
		j.Add(at.Add(time.Duration(second)*time.Second+time.Second/2), "sshd", failed(fmt.Sprintf("journal%d", second)))
	}
	r := &testReader{t: t, now: time.Now()}
	r.Follower = must.Get(New(Config{
		Logs:  []Log{{Path: path, Format: format}, {Path: "journal"}},
		Judge: func(ev *match.Event) { r.names = append(r.names, string(ev.Get(match.User))) },
	}))(t)
	t.Cleanup(r.close)
	for end := time.Now().Add(time.Minute); len(r.names) < 10 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r.poll(t.Context(), time.Now())
	}
	if want := []string{"file0", "journal0", "file1", "journal1", "file2", "journal2", "file3", "journal3", "file4", "journal4"}; !slices.Equal(r.names, want) {
		t.Errorf("read %q, want %q", r.names, want)
	}
}
