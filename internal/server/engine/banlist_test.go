package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/test/must"
)

// The requested bans are listed newest first; all bans are counted.
func TestNewestBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(engine.Config{Rules: parse(t, someRules)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		const many = 3000 // more than are kept at a time
		for i := range many {
			rule, key := "flood", []string{fmt.Sprint("u", i)}
			if i%2 == 1 {
				rule, key = "login", []string{"192.0.2.1", fmt.Sprint("u", i)}
			}
			must.Get(e.Bans().Ban(rule, key, time.Hour-time.Duration(i)*time.Millisecond, fmt.Sprint("reason", i%10), ""))(t)
			time.Sleep(time.Millisecond)
		}
		for _, c := range []struct {
			rule, text string
			n, total   int
			want       []string
		}{
			{"", "", 4, many, []string{"u2999", "u2998", "u2997", "u2996"}},
			{"flood", "", 2, many / 2, []string{"u2998", "u2996"}},
			{"", "reason7", 2, many / 10, []string{"u2997", "u2987"}},
			{"login", "u299", 9, 5 + 1, []string{"u2999", "u2997", "u2995", "u2993", "u2991", "u299"}},
			{"login", "nothing", 9, 0, nil},
			{"", "", 0, many, nil},
		} {
			page, err := e.Bans().Page(bans.Query{Rule: c.rule, Text: c.text, Limit: c.n})
			var got []string
			for _, r := range page.Bans {
				got = append(got, r.Values()[len(r.Values())-1])
			}
			if err != nil || page.Total != c.total || !slices.Equal(got, c.want) {
				t.Errorf("%q %q: %q, %d, %v; want %q, %d", c.rule, c.text, got, page.Total, err, c.want, c.total)
			}
		}
		_, err = e.Bans().Page(bans.Query{Rule: "flod", Limit: 1})
		wantCode(t, err, api.NoRule, `did you mean "flood"?`)
	})
}

// A ban without memory for it is not an error of the client.
func TestBansFull(t *testing.T) {
	e, err := engine.New(engine.Config{Rules: parse(t, someRules), Bans: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range 10_000 {
		if _, err = e.Bans().Ban("flood", []string{fmt.Sprint("u", i)}, time.Hour, "", ""); err != nil {
			break
		}
	}
	wantCode(t, err, api.Overload, "no memory for another ban")
}
