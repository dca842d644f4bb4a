package follow

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// A testReader follows logs of "SECOND,NAME" lines, and keeps the names that it is passed.
type testReader struct {
	t *testing.T
	*Follower
	names []string
	now   time.Time
}

func newReader(t *testing.T, c Config, paths ...string) *testReader {
	t.Helper()
	r := &testReader{t: t, now: time.Now()}
	format := must.Get(accesslog.ParseFormat("csv:time=1@s,client=2"))(t)
	for _, path := range paths {
		c.Logs = append(c.Logs, Log{Path: path, Format: format})
	}
	c.Judge = func(ev *match.Event) { r.names = append(r.names, string(ev.Get(match.Client))) }
	r.Follower = must.Get(New(c))(t)
	t.Cleanup(r.close)
	return r
}

// want polls, and compares the names that are new.
func (r *testReader) want(names ...string) {
	r.t.Helper()
	r.now = r.now.Add(2 * discover)
	r.poll(context.Background(), r.now)
	if !slices.Equal(r.names, names) {
		r.t.Fatalf("read %q, want %q", r.names, names)
	}
	r.names = nil
}

// resume goes on where another reader was.
func (r *testReader) resume(records [][]byte) {
	r.t.Helper()
	for _, record := range records {
		must.Do(r.t, r.Resume(record))
	}
}

func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
	for i, line := range lines {
		if !strings.Contains(line, ",") {
			lines[i] = "1700000000," + line
		}
	}
	must.Get(f.WriteString(strings.Join(lines, "\n") + "\n"))(t)
	must.Do(t, f.Close())
}

// TestOrigin passes on which log each event is from, and its format.
func TestOrigin(t *testing.T) {
	dir := t.TempDir()
	access, auth := filepath.Join(dir, "access.log"), filepath.Join(dir, "auth.log")
	write(t, access, `192.0.2.1 - - [17/Apr/2024:06:25:06 +0000] "GET /a,b HTTP/1.1" 200 5`)
	write(t, auth, "2024-04-17T06:25:07+00:00 host sshd[1,2]: no event,", "2024-04-17T06:25:07+00:00 host,a sshd[1]: Failed password for root from 192.0.2.2 port 22 ssh2")
	got := map[string]string{}
	f := must.Get(New(Config{Logs: []Log{{Path: filepath.Join(dir, "*.log")}}, Judge: func(ev *match.Event) {
		got[string(ev.Get(match.Client))] = string(ev.GetNamed("log")) + " " + string(ev.GetNamed("format"))
	}}))(t)
	t.Cleanup(f.close)
	f.poll(context.Background(), time.Now())
	want := map[string]string{"192.0.2.1": access + " clf", "192.0.2.2": auth + " messages"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSymlink follows a symbolic link to the files that it points to, back and forth.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "log")
	point := func(to string) {
		_ = os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	r := newReader(t, Config{}, link)
	r.want() // not there yet
	write(t, a, "a1")
	point(a)
	r.want("a1")
	write(t, a, "a2")
	write(t, b, "b1")
	point(b)
	write(t, a, "a3")
	r.want("a2", "a3", "b1")
	point(a)
	write(t, a, "a4")
	write(t, b, "b2")
	r.want("b2", "a4")

	// The process is replaced, and the link points elsewhere meanwhile.
	must.Do(t, r.Save(func(records [][]byte) error {
		write(t, a, "a5")
		point(b)
		write(t, b, "b3")
		next := newReader(t, Config{}, link)
		next.resume(records)
		next.want("a5", "b3")
		return nil
	}))
}

// TestDirectory follows what a directory and a pattern have, but not rotated files.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("a.log.1"), "old") // first: one that is newer than the log is read
	write(t, path("a.log"), "a1")
	write(t, path("b.txt"), "b1")
	write(t, path("c.log.gz"), "compressed")
	r := newReader(t, Config{}, dir)
	glob := newReader(t, Config{}, path("*.log"))
	r.want("a1", "b1")
	glob.want("a1")
	write(t, path("d.log"), "d1")
	for _, names := range [][2]string{{"a.log.1", "a.log.2"}, {"a.log", "a.log.1"}} {
		must.Do(t, os.Rename(path(names[0]), path(names[1])))
	}
	write(t, path("a.log.1"), "a2")
	write(t, path("a.log"), "a3")
	r.want("d1", "a2", "a3")
	glob.want("d1", "a2", "a3")
}

// TestLateness puts events in the order of time, counts late events, and keeps waiting
// events over a restart.
func TestLateness(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	at := time.Now().Unix()
	line := func(seconds int64, name string) string { return fmt.Sprintf("%d,%s", at+seconds, name) }
	c := Config{Lateness: 10 * time.Second}
	r := newReader(t, c, path)
	write(t, path, line(-100, "a"), line(-80, "c"), line(-85, "b"), line(-95, "late"), line(-2, "e"), line(-5, "d"))
	r.now = time.Unix(at, 0).Add(-2 * discover) // lines newer than ten seconds wait
	r.want("a", "late", "b", "c")
	if late := r.Stats()[0].Late; late != 1 {
		t.Errorf("%d events are late, want 1", late)
	}
	must.Do(t, r.Save(func(records [][]byte) error {
		next := newReader(t, c, path)
		next.now = r.now
		next.resume(records)
		next.want()
		next.now = next.now.Add(10 * time.Second)
		next.want("d", "e")
		return nil
	}))
}

// TestSeveralLogs passes on the events of several logs in the order of time.
func TestSeveralLogs(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "1700000001,1", "1700000003,3", "1700000005,5")
	write(t, b, "1700000002,2", "1700000004,4", "1700000006,6")
	r := newReader(t, Config{}, a, b)
	r.want("1", "2", "3", "4", "5", "6")
}

// TestLines counts lines that are bad, too long, or not there yet.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "1700000000,a", "x,bad", "# comment,", strings.Repeat("x", 3*blockSize), "1700000000,b")
	f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	must.Get(f.WriteString("1700000000,wh"))(t)
	r := newReader(t, Config{}, path)
	r.want("a", "b")
	if s := r.Stats()[0]; s.Lines != 5 || s.Bad != 2 || s.Skipped != 1 || s.Unread != int64(len("1700000000,wh")) {
		t.Errorf("%+v", s)
	}
	must.Get(f.WriteString("ole\n"))(t)
	r.want("whole")
}

// TestAhead gives an event that is ahead of the clock the time now, so that those after it
// are not late.
func TestAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, fmt.Sprintf("%d,ahead", time.Now().AddDate(1, 0, 0).Unix()), fmt.Sprintf("%d,after", time.Now().Unix()))
	r := newReader(t, Config{Lateness: 5 * time.Second}, path)
	r.now = r.now.Add(10 * time.Second)
	r.want("after", "ahead")
	if s := r.Stats()[0]; s.Late != 0 {
		t.Errorf("%+v", s)
	}
}

// TestSilence reports when a log is silent, and when it is not any more.
func TestSilence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r := newReader(t, Config{Silence: time.Minute}, path)
	silent := func(want bool) {
		t.Helper()
		if s := r.Stats()[0]; s.Silent != want {
			t.Errorf("%+v, want it silent: %v", s, want)
		}
	}
	r.want()
	silent(false)
	r.now = r.now.Add(time.Minute)
	r.want()
	silent(true)
	write(t, path, "a")
	r.want("a")
	silent(false)
}

// TestGaps counts lines that were deleted before they were read, reports why a log cannot be read, and counts no rotation
// that keeps the file.
func TestGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r := newReader(t, Config{}, path)
	gaps := func(want uint64, problem bool) {
		t.Helper()
		if s := r.Stats()[0]; s.Gaps != want || (s.Problem != "") != problem {
			t.Errorf("%+v, want %d gaps, and a problem: %v", s, want, problem)
		}
	}
	r.want()
	gaps(0, true) // it is not there
	write(t, path, "a", "b")
	r.want("a", "b")
	gaps(0, false)
	must.Do(t, os.Rename(path, path+".1"))
	write(t, path+".1", "c")
	write(t, path, "d")
	r.want("c", "d")
	gaps(0, false)
	if err := os.Truncate(path, 0); err != nil { // without a copy: the last lines may be lost
		t.Fatal(err)
	}
	write(t, path, "other")
	r.want("other")
	gaps(1, false)
}

// TestNewRejects names the setting that is wrong.
func TestNewRejects(t *testing.T) {
	for want, c := range map[string]Config{
		"at least one":     {},
		"an empty path":    {Logs: []Log{{}}},
		"lateness: -1s":    {Logs: []Log{{Path: "x"}}, Lateness: -time.Second},
		"silence: -1s":     {Logs: []Log{{Path: "x"}}, Silence: -time.Second},
		"syntax error":     {Logs: []Log{{Path: "["}}},
		"must be 0s to 1h": {Logs: []Log{{Path: "x"}}, Lateness: 2 * time.Hour},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestRotatedName reads the names of rotated files.
func TestRotatedName(t *testing.T) {
	for name, want := range map[string]bool{
		"access.log.1": true, "access.log.12.gz": true, "access.log-20240129": true, "access.log-20240129.gz": true,
		"access-20240129.log": true, "access.1.log": true, "access.log.2024-01-29T10:00:00": true, "access.log.20240129-101500.zst": true,
		"access.log": false, "access.log.gz": false, "access.log.old": false, "access-api.log": false, "access.log.1.tmp": false,
	} {
		if _, ok := rotatedName("access.log", name); ok != want {
			t.Errorf("%s: %v, want %v", name, ok, want)
		}
	}
}

// TestRenamedMeanwhile looks again for rotated files if a rotation renames them between their
// listing and their opening.
func TestRenamedMeanwhile(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	write(t, log+".1", "a")
	r := newReader(t, Config{}, log)
	var listed []string
	r.tails[0].settled(&place{}, func(files []rotated) {
		for _, file := range files {
			listed = append(listed, strings.TrimPrefix(file.path, log))
		}
		if len(listed) == 1 {
			must.Do(t, os.Rename(log+".1", log+".2"))
		}
		r.tails[0].add(files[0], nil, false, time.Now())
	})
	if !slices.Equal(listed, []string{".1", ".2"}) || r.tails[0].stats.Gaps != 0 {
		t.Errorf("the files are %q, with %d gaps", listed, r.tails[0].stats.Gaps)
	}
	r.want("a")
}

// TestHeldBytes bounds the memory of events that wait for older ones, however long their values
// are: the oldest are passed on.
func TestHeldBytes(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	var lines, names []string
	for n := range 1000 {
		name := fmt.Sprintf("%d-%s", n, strings.Repeat("x", 60_000))
		names = append(names, name)
		lines = append(lines, fmt.Sprintf("%d,%s", 1_700_000_000+n, name))
	}
	write(t, log, lines...)
	r := newReader(t, Config{Lateness: time.Hour}, log)
	for most := 0; r.readNext(r.now) || len(r.tails[0].gens) == 0; r.look(r.now) {
		if most = max(most, r.queue.bytes); most > maxHeldBytes {
			t.Fatalf("%d bytes wait, more than %d", most, maxHeldBytes)
		}
	}
	if n := len(r.names); n < 300 || n > 900 || !slices.Equal(r.names, names[:n]) {
		t.Errorf("%d of 1000 events were passed on, or not the oldest", n)
	}
}
