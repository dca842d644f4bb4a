//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// A safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// got returns the body of a page, and its status.
func got(t *testing.T, url string) (int, string) {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(text)
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s has not come about", what)
		}
	}
}

// occupied makes folders with the names of the files that a server writes that has not written any, and returns
// how to remove them: a disk that fails, for any user.
func occupied(t *testing.T, dir string) (free func()) {
	t.Helper()
	paths := []string{filepath.Join(dir, "state"), filepath.Join(dir, "state.tmp")}
	for _, path := range paths {
		must.Do(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	}
	return func() {
		for _, path := range paths {
			must.Do(t, os.RemoveAll(path))
		}
	}
}

// While the data directory cannot be written, a ban that a rule begins holds, and the log, the metrics, /readyz and the
// status report that it may not survive. When it can be written again, they report that, and the ban is on disk.
func TestDiskFails(t *testing.T) {
	c := deployed(t)
	c.Data = t.TempDir()
	c.SnapshotEvery = time.Hour
	var log safeBuffer
	s, url := startedWith(t, c, slog.New(slog.NewTextHandler(&log, nil)))
	if code, text := got(t, url+"/readyz"); code != 200 {
		t.Fatalf("/readyz: %d %s", code, text)
	}
	free := occupied(t, c.Data)
	caller := s.engine.Session()
	for range 5 {
		ev := caller.Event()
		ev.SetNamedString("client", "192.0.2.1")
		must.Get(caller.Check(ev, 1, engine.Terms{}))(t)
	}
	wants := []string{`ban journal: cannot be written since 20`, `snapshots: cannot be written since 20`, "file exists"}
	eventually(t, "/readyz says no", func() bool {
		s.requestSnapshot()
		code, text := got(t, url+"/readyz")
		for _, want := range wants {
			if code != 503 || !strings.Contains(text, want) || strings.Contains(text, c.Data) {
				return false
			}
		}
		return true
	})
	eventually(t, "failures of both kinds", func() bool {
		s.requestSnapshot()
		_, text := got(t, url+"/metrics")
		return regexp.MustCompile(`(?m)^lately_journal_failures_total [2-9]`).MatchString(text) &&
			regexp.MustCompile(`(?m)^lately_snapshot_failures_total [2-9]`).MatchString(text) &&
			strings.Contains(text, "\nlately_journal_failing 1\n") && strings.Contains(text, "\nlately_snapshot_failing 1\n")
	})
	if _, values := scrape(t, url, ""); values["lately_journal_missing_bans"] != 1 {
		t.Errorf("lately_journal_missing_bans is %v, want the ban that began", values["lately_journal_missing_bans"])
	}
	var status struct {
		Storage struct {
			Journal  string `json:"journal_error"`
			Snapshot string `json:"snapshot_error"`
		}
	}
	if _, text := got(t, url+"/v1/status"); json.Unmarshal([]byte(text), &status) != nil || !strings.Contains(status.Storage.Journal, c.Data) || !strings.Contains(status.Storage.Snapshot, c.Data) {
		t.Errorf("the status: %s", text)
	}
	for file, want := range map[string]int{"ban journal": 1, "snapshots": 1} {
		if n := len(regexp.MustCompile(`level=ERROR msg="writing to the data directory fails.*file="?`+file+`"? error=`).FindAllString(log.String(), -1)); n != want {
			t.Errorf("the log has %d lines that writing %s fails; want %d:\n%s", n, file, want, log.String())
		}
	}

	free()
	eventually(t, "/readyz says yes", func() bool { code, _ := got(t, url+"/readyz"); return code == 200 })
	if _, text := got(t, url+"/metrics"); !strings.Contains(text, "\nlately_journal_failing 0\n") || !strings.Contains(text, "\nlately_snapshot_failing 0\n") {
		t.Error("the metrics still report that writing fails")
	}
	if _, values := scrape(t, url, ""); values["lately_journal_missing_bans"] != 0 {
		t.Errorf("lately_journal_missing_bans is %v after all", values["lately_journal_missing_bans"])
	}
	for _, file := range []string{"ban journal", "snapshots"} {
		if !regexp.MustCompile(`level=INFO msg="writing to the data directory works again" file="?` + file).MatchString(log.String()) {
			t.Errorf("the log has no line that writing %s works again:\n%s", file, log.String())
		}
	}
	after := copied(t, c.Data) // as after a kill
	c.Data = after
	again, _ := started(t, c)
	if _, held, err := again.engine.Limiter().Bans().Get("per-client", "192.0.2.1"); !held || err != nil {
		t.Errorf("the ban has not survived: %v", err)
	}
}

// copied returns a copy of a directory at one moment: a server may be writing there, and no file changes during the copy.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	eventually(t, "no file changes", func() bool {
		before := listing(dir)
		must.Do(t, os.RemoveAll(to))
		err := os.CopyFS(to, os.DirFS(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil && before != "" && before == listing(dir)
	})
	return to
}

// listing returns the files of a directory with their sizes and times, or "" if one vanishes
// meanwhile.
func listing(dir string) string {
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&all, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		return ""
	}
	return all.String()
}

// posted sends a body of JSON and returns the answer.
func posted(t *testing.T, url, body string) (int, string) {
	t.Helper()
	answer := must.Get(http.Post(url, "application/json", strings.NewReader(body)))(t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(text)
}

// A server that starts with a journal in which records are missing reports how many, in the metrics too.
func TestJournalGap(t *testing.T) {
	c := deployed(t)
	c.Data = t.TempDir()
	_, url := started(t, c)
	for i := range 20 {
		if code, text := posted(t, url+"/v1/bans", fmt.Sprintf(`{"rule":"per-client","key":"192.0.2.%d","for":"1h"}`, i+1)); code != 201 {
			t.Fatalf("ban %d: %d %s", i, code, text)
		}
	}
	if _, text := got(t, url+"/metrics"); !strings.Contains(text, "\nlately_state_lost_records 0\n") {
		t.Error("a whole journal has lost records")
	}
	c.Data = copied(t, c.Data)
	state := filepath.Join(c.Data, "state")
	data := must.Get(os.ReadFile(state))(t)
	data[len(data)/2] ^= 1
	must.Do(t, os.WriteFile(state, data, 0o600))
	_, url = started(t, c)
	if _, text := got(t, url+"/metrics"); !regexp.MustCompile(`(?m)^lately_state_lost_records 1$`).MatchString(text) {
		t.Errorf("one record is damaged; /metrics: %s", regexp.MustCompile(`(?m)^lately_journal.*$`).FindAllString(text, -1))
	}
}
