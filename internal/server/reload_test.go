package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/test/must"
)

// A reload takes all files or none: a token file with a mistake keeps new rules out.
func TestReloadIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		must.Do(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	token := func(c byte) string { return "admin " + strings.Repeat(string(c), 32) + "\n" }
	first, second := "version: 1\nallow: [192.0.2.1]\n", "version: 1\nallow: [192.0.2.2]\n"
	write("rules.yaml", first)
	write("tokens", token('a'))
	s := must.Get(New(Config{RESP: "127.0.0.1:0", HTTP: Off, RulesFiles: []string{at("rules.yaml")}, TokenFile: at("tokens")}, "test", nil))(t)
	defer s.close()
	tokens := s.tokens.Load()
	for _, step := range []struct {
		rules, tokens string
		ok            bool
		text          string // of the rules that are then in force
		other         bool   // tokens
	}{
		{second, "admin short\n", false, first, false},
		{"version: 2\n", token('b'), false, first, false},
		{"version: 2\n", "nobody\n", false, first, false},
		{second, token('b'), true, second, true},
	} {
		write("rules.yaml", step.rules)
		write("tokens", step.tokens)
		err := s.Reload()
		text := s.engine.Rules().Text
		if other := s.tokens.Load() != tokens; (err == nil) != step.ok || string(text) != step.text || other != step.other {
			t.Errorf("%q, %q: %v; the rules are %q, other tokens: %v", step.rules, step.tokens, err, text, other)
		}
		if status := s.engine.Status(); (status.Rules.Error == "") != step.ok || fmt.Sprint(s.engine.Rules().Allow.Clients) != "["+step.text[len("version: 1\nallow: ["):len(step.text)-2]+"/32]" {
			t.Errorf("%q, %q: %+v, %v", step.rules, step.tokens, status.Rules.Error, s.engine.Rules().Allow.Clients)
		}
	}
}

// A reload reports its changes. A reload that would drop bans is refused with their number, unless --drop-bans is given.
func TestReloadListsChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		must.Do(t, os.WriteFile(path, []byte("version: 1\n"+text), 0o600))
	}
	const (
		limits   = "limits: [{name: per-client, key: client, limit: 60 per 1m}, {name: login, key: [client, user], limit: 5 per 1m}]\n"
		tighter  = "limits: [{name: per-client, key: client, limit: 30 per 1m}, {name: login, key: [client, user], limit: 5 per 1m}]\n"
		rekeyed  = "limits: [{name: per-client, key: user, limit: 30 per 1m}, {name: login, key: [client, user], limit: 5 per 1m}]\n"
		counters = "counters: {requests: {key: client, spans: [1m]}}\n"
		hot      = "hot: [{name: page, key: path, threshold: 3 per 2s, hold: 60s}]\n"
	)
	write(limits + counters)
	var log bytes.Buffer
	s := must.Get(New(Config{RESP: "127.0.0.1:0", HTTP: Off, RulesFiles: []string{path}}, "test", slog.New(slog.NewTextHandler(&log, nil))))(t)
	defer s.close()
	for i := range 3 {
		must.Get(s.engine.Bans().Ban("per-client", []string{fmt.Sprint("192.0.2.", i)}, time.Hour, "", ""))(t)
	}
	must.Get(s.engine.Bans().Ban("login", []string{"192.0.2.1", "root"}, time.Hour, "", ""))(t)
	same := func(a, b api.RuleChanges) bool {
		return slices.Equal(a.Added, b.Added) && slices.Equal(a.Removed, b.Removed) && slices.Equal(a.Changed, b.Changed) && a.BansDropped == b.BansDropped
	}
	type changes = api.RuleChanges
	for i, step := range []struct {
		text string
		drop bool
		want changes
		err  string // of a refusal
		bans int    // that hold then
	}{
		{limits + counters, false, changes{}, "", 4},
		{tighter + counters + hot, false, changes{Added: []string{"page"}, Changed: []string{"per-client"}}, "", 4},
		{tighter + "allow: [192.0.2.9]\n", false, changes{Changed: []string{"allow list"}, Removed: []string{"counter requests", "page"}}, "", 4},
		{rekeyed, false, changes{}, "CONFLICT the new rules would drop 3 bans, under rules that they remove or that get another key: per-client;", 4},
		{"", false, changes{}, "would drop 4 bans, under rules that they remove or that get another key: login, per-client;", 4},
		{rekeyed, true, changes{Changed: []string{"allow list", "per-client"}, BansDropped: 3}, "", 1},
		{"", true, changes{Removed: []string{"login", "per-client"}, BansDropped: 1}, "", 0},
	} {
		write(step.text)
		got, err := s.reload(step.drop)
		if known, ok := errors.AsType[*apierror.Error](err); (err == nil) != (step.err == "") || err != nil && (!strings.Contains(err.Error(), step.err) || !ok || known.Code != api.Conflict) {
			t.Errorf("step %d: %v; want %q", i, err, step.err)
		}
		if !same(got, step.want) {
			t.Errorf("step %d: %+v; want %+v", i, got, step.want)
		}
		bans := 0
		for range s.engine.Bans().All() {
			bans++
		}
		if bans != step.bans {
			t.Errorf("step %d: %d bans hold; want %d", i, bans, step.bans)
		}
	}
	for _, want := range []string{`msg=reloaded .*added=page removed="" changed=per-client bans_dropped=0`, `level=ERROR msg="reload failed; the old rules and files stay in force" error="CONFLICT the new rules would drop 3 bans`} {
		if !regexp.MustCompile(want).MatchString(log.String()) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
}
