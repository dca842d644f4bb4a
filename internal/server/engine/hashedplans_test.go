package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/secret"
	"github.com/lately-go/lately/rules"
)

// TestPlansByHashedField finds the plan of an API key, of which only a digest is known, as an event and as a key: before and
// after the secret of a store replaces that of the server, and after a reload.
func TestPlansByHashedField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	const text = "version: 1\nfields: {api_key: {header: X-API-Key, hash: true}}\n" +
		"limits: [{name: keys, key: api_key, limit: {by: api_key, plans: plans.txt, default: 60 per 1m, at_most: 9999 per 1m}}]\n"
	for name, contents := range map[string]string{path: text, filepath.Join(filepath.Dir(path), "plans.txt"): "k-1 600\nk-2 700\n"} {
		if err := os.WriteFile(name, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() *rules.File {
		file, err := rules.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	e, err := New(Config{Rules: load()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	check := func(when string) {
		t.Helper()
		s := e.Session()
		for key, want := range map[string]uint64{"k-1": 600, "k-2": 700, "k-3": 60} {
			ev := s.Event()
			ev.SetNamedString("api_key", key)
			d, err := s.Check(ev, 1)
			if err != nil || d.Limit != want {
				t.Errorf("%s: the event of %s is judged by %d, %v; want %d", when, key, d.Limit, err, want)
			}
			if d, err = s.Take("keys", 1, key); err != nil || d.Limit != want {
				t.Errorf("%s: %s is judged by %d, %v; want %d", when, key, d.Limit, err, want)
			}
		}
	}
	check("at first")
	if err := e.SetSecret(secret.New().Value()); err != nil {
		t.Fatal(err)
	}
	check("with another secret")
	if _, err := e.Replace(load(), false); err != nil {
		t.Fatal(err)
	}
	check("after a reload")
	e.Secret().Set(secret.New().Value()) // the control: without SetSecret, the digests are of another key
	s := e.Session()
	ev := s.Event()
	ev.SetNamedString("api_key", "k-1")
	if d, err := s.Check(ev, 1); err != nil || d.Limit != 60 {
		t.Errorf("the control is judged by %d, %v; want 60", d.Limit, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), "plans.txt")); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSecret(secret.New().Value()); err == nil {
		t.Error("a file of plans that is gone is no error")
	}
}
