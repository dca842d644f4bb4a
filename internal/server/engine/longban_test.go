package engine_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
)

// A digest may contain the byte that separates the values of a joined key: one of nine does.
func TestBanOfALongKeyWhoseDigestContainsASeparator(t *testing.T) {
	e := newEngine(t, "version: 1\nbans: [{name: pair, key: [user, path], after: 1 hits in 1m, for: 1h}]\n")
	c, path := e.Session(), "/"+strings.Repeat("p", 1000)
	for found := 0; found < 3; {
		user := strings.Repeat("u", 700) + rand.Text()
		for range 2 {
			check(t, c, event(c, "user", user, "path", path), 1)
		}
		for r := range e.Bans().All() {
			listed := r.Values()
			if strings.Count(listed[0], string(keys.Separator)) == 1 {
				found++
			}
			if n, err := e.Bans().Unban("pair", listed); n != 1 || err != nil {
				t.Fatalf("%q: %d, %v; want 1 ban ended", listed, n, err)
			}
		}
	}
}

// A key with too many or too few values is an error that tells their number.
func TestBanOfAJoinedKey(t *testing.T) {
	e := newEngine(t, "version: 1\nbans: [{name: pair, key: [user, path], after: 1 hits in 1m, for: 1h}]\n")
	_, err := e.Bans().Ban("pair", []string{"a\tb\tc"}, time.Hour, "", "")
	wantCode(t, err, api.BadArg, "number of key values: 3: must be 2")
	_, err = e.Bans().Unban("pair", []string{"a\tb\tc"})
	wantCode(t, err, api.BadArg, "number of key values: 3: must be 2")
	must.Get(e.Bans().Ban("pair", []string{"a\t/b"}, time.Hour, "", ""))(t)
	if n, err := e.Bans().Unban("pair", []string{"a\t/b"}); n != 1 || err != nil {
		t.Errorf("%d, %v; want 1 ban ended", n, err)
	}
}

// A ban whose values together are too long to be kept is listed by their digest. It survives a kill, and can be ended by
// the values, by the digest and together with others.
func TestBanOfALongKey(t *testing.T) {
	const text = "version: 1\nbans: [{name: pair, key: [user, path], after: 1 hits in 1m, for: 1h}]\n"
	user, path := strings.Repeat("u", 700), "/"+strings.Repeat("p", 700)
	for what, end := range map[string]func(e *engine.Engine, listed []string) (int, error){
		"values": func(e *engine.Engine, _ []string) (int, error) { return e.Bans().Unban("pair", []string{user, path}) },
		"digest": func(e *engine.Engine, listed []string) (int, error) { return e.Bans().Unban("pair", listed) },
		"all":    func(e *engine.Engine, _ []string) (int, error) { return e.Bans().UnbanAll(api.BanFilter{Rule: "pair"}) },
	} {
		records := saved(t, newEngine(t, text)) // a snapshot from before the ban
		e := restored(t, text, records)
		c := e.Session()
		for range 2 {
			check(t, c, event(c, "user", user, "path", path), 1)
		}
		if got := banned(t, e); len(got) != 1 {
			t.Fatalf("%q", got)
		}
		var listed []string
		for r := range e.Bans().All() {
			listed = r.Values()
		}
		if len(listed) != 1 {
			t.Fatalf("listed as %q; want a digest", listed)
		}
		after := restored(t, text, records)
		line := `{"ban":` + marshalled(t, e) + `}`
		must.Do(t, after.Restorer().Record(journal.Record{Type: 'b', Data: []byte(line)}))
		if got := banned(t, after); len(got) != 1 {
			t.Fatalf("after a restart %q are banned", got)
		}
		if n, err := end(after, listed); n != 1 || err != nil {
			t.Errorf("by %s: %d, %v", what, n, err)
		}
		if got := banned(t, after); len(got) != 0 {
			t.Errorf("by %s: %q are still banned", what, got)
		}
	}
	e := newEngine(t, text)
	if _, err := e.Bans().Unban("pair", []string{"x"}); err == nil {
		t.Error("one value of two is accepted")
	}
	_, err := e.Bans().Ban("pair", []string{strings.Repeat("x", 32)}, time.Hour, "", "")
	wantCode(t, err, api.BadArg, "number of key values: 1")
}

// marshalled returns the only ban of e as the journal has it.
func marshalled(t *testing.T, e *engine.Engine) string {
	t.Helper()
	for r := range e.Limiter().Bans().All() {
		b := must.Get(r.MarshalJSON())(t)
		return strings.TrimSpace(string(b))
	}
	t.Fatal("no ban is listed")
	return ""
}
