package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestServeOutcomesKilled kills a server with SIGKILL after answers were reported: a new one has their counts,
// the ban that they began, and the ids that were reported.
func TestServeOutcomesKilled(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	args := []string{"--data", data, "--snapshot-every", "1s", "--rules", writeRules(t, `version: 1
limits:
  - {name: failed-logins, key: client, when: {path: /login, status: 401}, limit: 2 per 10m}
bans:
  - {name: missing, key: client, when: {status: 404}, after: 2 hits in 10m, for: 1h}
`)}
	s := serve(t, args...)
	post := func(path, event, want string) (answer string) {
		t.Helper()
		w := must.Get(http.Post(s.http+path, "application/json", strings.NewReader(`{"event":`+event+`}`)))(t)
		defer w.Body.Close()
		text, err := io.ReadAll(w.Body)
		if err != nil || w.StatusCode != 200 || !strings.Contains(string(text), want) {
			t.Errorf("%s %s: %d %s %v; want %s", path, event, w.StatusCode, text, err, want)
		}
		return string(text)
	}
	ask := func() (id string) { // for the id of a decision
		t.Helper()
		_, id, _ = strings.Cut(post("/v1/check", `{"client":"192.0.2.5","path":"/login"},"outcome_ms":600000`, `"id":"`), `"id":"`)
		return strings.TrimSuffix(strings.TrimSpace(id), `"}`)
	}
	byID := func(id string) {
		t.Helper()
		post("/v1/outcome", `{"status":"401"},"id":"`+id+`"`, `"allowed":true`)
	}
	login := func(want string) { t.Helper(); post("/v1/check", `{"client":"192.0.2.1","path":"/login"}`, want) }
	for range 2 {
		login(`"allowed":true`)
		post("/v1/outcome", `{"client":"192.0.2.1","path":"/login","status":"401"}`, `"allowed":true`)
	}
	for range 3 {
		post("/v1/outcome", `{"client":"192.0.2.2","path":"/x","status":"404"}`, `"allowed":true`)
	}
	reported, open := ask(), ask()
	byID(reported)
	for range 2 { // one may have begun before; the journal of bans, which is in it, does not make it another file
		last := stateOf(data)
		if !eventually(func() bool { now := stateOf(data); return now != nil && !os.SameFile(last, now) }) {
			t.Fatal("no snapshot was written")
		}
		post("/v1/check", `{"client":"192.0.2.4","path":"/login"}`, `"allowed":true`)
		post("/v1/outcome", `{"client":"192.0.2.4","path":"/login","status":"401"}`, `"allowed":true`) // without a change none is written
	}
	s.kill()
	s = serve(t, args...)
	login(`"allowed":false`)
	post("/v1/check", `{"client":"192.0.2.2","path":"/"}`, `"allowed":false,"limit":2,"remaining":0`)
	post("/v1/check", `{"client":"192.0.2.3","path":"/login"}`, `"allowed":true`)
	byID(reported) // it was, before
	post("/v1/check", `{"client":"192.0.2.5","path":"/login"}`, `"allowed":true`)
	for range 2 {
		byID(open)
	}
	post("/v1/check", `{"client":"192.0.2.5","path":"/login"}`, `"allowed":false`)
}

// stateOf returns the file with the state in a directory, or nil.
func stateOf(dir string) os.FileInfo {
	info, err := os.Stat(filepath.Join(dir, "state"))
	if err != nil {
		return nil
	}
	return info
}
