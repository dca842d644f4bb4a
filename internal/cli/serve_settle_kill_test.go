package cli

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// TestSettleAfterKill settles reservations after a restart, and after a kill that has lost the
// counts since the last snapshot.
func TestSettleAfterKill(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--rules", writeRules(t, "version: 1\nlimits: [{name: tokens, key: user, limit: 1000 per 1h}]\n"), "--data", dir, "--snapshot-every", "1h"}
	start := func() (*serving, *talker) {
		s := serve(t, args...)
		return s, s.dial()
	}
	reserve := func(c *talker, cost string) string {
		t.Helper()
		answer := strings.Fields(strings.Trim(c.say("RESERVE", "tokens", "ada", "COST", cost, "FOR", "3600000"), "[]"))
		if len(answer) != 9 || answer[0] != "1" {
			t.Fatalf("RESERVE answers %q", answer)
		}
		return answer[8]
	}
	want := func(c *talker, when, id, cost, want, left string) {
		t.Helper()
		if got := c.say("SETTLE", id, "COST", cost); got != want {
			t.Errorf("%s: SETTLE answers %s, want %s", when, got, want)
		}
		if got := c.say("PEEK", "tokens", "ada", "COST", left); !strings.HasPrefix(got, "[1 1000 0 ") {
			t.Errorf("%s: PEEK of %s answers %s, want none left", when, left, got)
		}
	}
	s, c := start()
	a, b := reserve(c, "300"), reserve(c, "200")
	want(c, "at once", reserve(c, "100"), "10", "1", "490")
	if err := s.end(); err != nil { // two seconds later, so its snapshot has them for sure
		t.Fatal(err)
	}
	s, c = start()
	want(c, "after a restart", b, "50", "1", "640")
	d := reserve(c, "400")
	s.kill() // b and d are lost
	s, c = start()
	want(c, "the settlement was lost", b, "50", "1", "640")
	want(c, "the reservation was lost", d, "40", "1", "600")
	want(c, "the reservation was kept", a, "100", "1", "800")
	must.Do(t, s.end())
	_, c = start()
	for _, id := range []string{a, b, d} {
		want(c, "settled before the restart", id, "0", "0", "800")
	}
}
