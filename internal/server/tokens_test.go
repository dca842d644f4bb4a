package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// tokenConfig is a server with that token file and little else.
func tokenConfig(path string) Config {
	return Config{RESP: "127.0.0.1:0", HTTP: Off, TokenFile: path}
}

// The token file is made at the first start, and the same at the next. The log has its path and none of its content.
func TestTokenFileIsMade(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var texts [2]string
	for i := range texts {
		c := tokenConfig(path)
		c.Data = dir // may be where the state is
		s := must.Get(New(c, "test", log))(t)
		text := must.Get(os.ReadFile(path))(t)
		texts[i] = string(text)
		words := strings.Fields(texts[i][strings.LastIndex(texts[i], "\nadmin "):])
		if role, _, ok := s.tokens.Load().Role(words[1]); !ok || role != access.Admin {
			t.Errorf("the token of the admin is one of %v", role)
		}
		for _, word := range strings.Fields(texts[i]) {
			if len(word) >= access.MinToken && strings.Contains(out.String(), word) {
				t.Error("the log has a token")
			}
		}
		s.close()
	}
	if texts[0] != texts[1] || texts[0] == "" {
		t.Error("the second start has changed the file")
	}
	if n := strings.Count(out.String(), "token file created"); n != 1 || !strings.Contains(out.String(), path) {
		t.Errorf("%d lines in the log:\n%s", n, out.String())
	}
}

// Where it cannot be made, and where another file is in its place, the server does not start, and leaves the files as they
// are.
func TestTokenFileIsNotCreated(t *testing.T) {
	dir := t.TempDir()
	dangling, empty := filepath.Join(dir, "link"), filepath.Join(dir, "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Skip("SKIP: there are no links here:", err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "tokens"): "create the directory",
		dangling:                             "no such file",
		empty:                                "has no token",
		dir:                                  "must be a regular file",
	} {
		if _, err := New(tokenConfig(path), "test", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", path, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("there are %v (%v); want what was there", left, err)
	}
	bad := tokenConfig(filepath.Join(dir, "tokens"))
	bad.RulesFiles = []string{filepath.Join(dir, "no-rules")}
	if _, err := New(bad, "test", nil); err == nil {
		t.Error("it starts without its rules")
	}
	if _, err := os.Stat(bad.TokenFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a server that cannot start has made tokens: %v", err)
	}
}

// A reload takes other tokens, keeps equal ones, so that sessions stay, and makes none if the file is missing.
func TestReloadTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	s := must.Get(New(tokenConfig(path), "test", nil))(t)
	defer s.close()
	first := s.tokens.Load()
	text := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, append([]byte("# a remark\n"), text...), 0o600))
	if err := s.Reload(); err != nil || s.tokens.Load() != first {
		t.Errorf("the same tokens under a remark: %v, others: %v", err, s.tokens.Load() != first)
	}
	must.Do(t, os.Remove(path))
	if err := s.Reload(); !errors.Is(err, fs.ErrNotExist) || s.tokens.Load() != first {
		t.Errorf("without the file: %v, others: %v", err, s.tokens.Load() != first)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reload has made tokens: %v", err)
	}
	must.Get(access.Generate(path))(t)
	if err := s.Reload(); err != nil || s.tokens.Load().Equal(first) {
		t.Errorf("other tokens are not taken: %v", err)
	}
}
