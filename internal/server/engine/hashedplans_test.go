package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestPlansByHashedField finds the plan of an API key that is stored as a digest, for an event and for a key: before and
// after the secret of a store replaces that of the server, and after a reload.
func TestPlansByHashedField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	const text = "version: 1\nfields: {api_key: {header: X-API-Key, hash: true}}\n" +
		"limits: [{name: keys, key: api_key, limit: {by: api_key, plans: plans.txt, default: 60 per 1m, at_most: 9999 per 1m}}]\n"
	for name, contents := range map[string]string{path: text, filepath.Join(filepath.Dir(path), "plans.txt"): "k-1 600\nk-2 700\n"} {
		must.Do(t, os.WriteFile(name, []byte(contents), 0o600))
	}
	load := func() *rules.File {
		return must.Get(rules.Load(path))(t)
	}
	e := must.Get(New(Config{Rules: load()}))(t)
	defer e.Close()
	check := func(when string) {
		t.Helper()
		s := e.Session()
		for key, want := range map[string]uint64{"k-1": 600, "k-2": 700, "k-3": 60} {
			ev := s.Event()
			ev.SetNamedString("api_key", key)
			d, err := s.Check(ev, 1, Terms{})
			if err != nil || d.Limit != want {
				t.Errorf("%s: the event of %s is judged by %d, %v; want %d", when, key, d.Limit, err, want)
			}
			if d, err = s.Take("keys", 1, key); err != nil || d.Limit != want {
				t.Errorf("%s: %s is judged by %d, %v; want %d", when, key, d.Limit, err, want)
			}
		}
	}
	check("at first")
	must.Do(t, e.SetSecret(secret.New().Value()))
	check("with another secret")
	must.Get(e.Replace(load(), false))(t)
	check("after a reload")
	e.Secret().Set(secret.New().Value()) // the control: without SetSecret, the digests are of another key
	s := e.Session()
	ev := s.Event()
	ev.SetNamedString("api_key", "k-1")
	if d, err := s.Check(ev, 1, Terms{}); err != nil || d.Limit != 60 {
		t.Errorf("the control is judged by %d, %v; want 60", d.Limit, err)
	}
	must.Do(t, os.Remove(filepath.Join(filepath.Dir(path), "plans.txt")))
	if err := e.SetSecret(secret.New().Value()); err == nil {
		t.Error("a missing file of plans is accepted")
	}
}
