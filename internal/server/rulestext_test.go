package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// The text of the rules is the text in force, even if the file has changed.
func TestRulesText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := func(s *Server) string { return string(s.engine.Rules().Text) }
	c := Config{RESP: "127.0.0.1:0", HTTP: Off}
	s := must.Get(New(c, "test", nil))(t)
	if err := s.Reload(); err != nil || text(s) != "" {
		t.Errorf("without a rules file: %q, %v", text(s), err)
	}
	s.close()
	first, second := "version: 1\nallow: [192.0.2.1]\n", "version: 1\nallow: [192.0.2.2]\n"
	for i, step := range []struct {
		text, want string
		ok         bool
	}{{first, first, true}, {"version: 2\n", first, false}, {second, second, true}, {"", second, false}} {
		must.Do(t, os.WriteFile(path, []byte(step.text), 0o600))
		if i == 0 {
			c.RulesFiles = []string{path}
			s = must.Get(New(c, "test", nil))(t)
			defer s.close()
		} else if err := s.Reload(); (err == nil) != step.ok {
			t.Errorf("step %d: %v", i, err)
		}
		if got := text(s); got != step.want {
			t.Errorf("step %d: the text is %q, want %q", i, got, step.want)
		}
	}
}
