package httpapi

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// The rules in force are listed with the files of their allow list. A draft may use these files, and its sender learns
// nothing about others, not even whether they exist.
func TestAllowFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("cdn.txt", "192.0.2.8/30\n2001:db8::/32\n")
	secret := write("secret", "hunter2\n")
	path := write("rules.yaml", inForce+"allow: {clients: [10.0.0.0/8], files: cdn.txt}\n")
	file := must.Get(rules.Load(path))(t)
	e := must.Get(engine.New(engine.Config{Rules: file, KeepEvents: 4 << 20}))(t)
	t.Cleanup(e.Close)
	s := newServer(t, func(c *Config) { c.Engine = e })

	var set api.RuleSet
	must.Do(t, json.Unmarshal(get(s, "/v1/rules").Body.Bytes(), &set))
	if a := set.Allow; len(a.Clients) != 1 || a.Clients[0].String() != "10.0.0.0/8" || len(a.Files) != 1 || a.Files[0] != (api.AllowFile{Name: "cdn.txt", Prefixes: 2}) {
		t.Errorf("the allow list is %+v", a)
	}

	check := func(files string) string {
		w := ask(s, request{method: "POST", path: "/v1/rules/check", body: "version: 1\nallow: {files: [" + files + "]}\n"})
		if w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		return w.Body.String()
	}
	if body := check("cdn.txt"); !strings.Contains(body, "every client in cdn.txt (2 prefixes)") || strings.Contains(body, "warnings") {
		t.Errorf("a draft with the same file: %s", body)
	}
	known, unknown := check(secret), check(secret+"2")
	if strings.Contains(known, "hunter2") || !strings.Contains(known, "not read") || strings.ReplaceAll(unknown, "secret2", "secret") != known {
		t.Errorf("a draft with a file that exists: %s\nand with one that does not: %s", known, unknown)
	}
}
