package sentence

import (
	"testing"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func TestOrdinal(t *testing.T) {
	for want, n := range map[string]uint64{
		"0th": 0, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "11th": 11, "12th": 12, "13th": 13, "21st": 21, "101st": 101, "111th": 111, "1112th": 1112, "1123rd": 1123,
	} {
		if got := ordinal(n); got != want {
			t.Errorf("ordinal(%d) = %q; want %q", n, got, want)
		}
	}
}

func TestLacking(t *testing.T) {
	one := &ratelimit.Rule{Key: match.MustKey("api_key")}
	shadow := &ratelimit.Rule{Key: match.MustKey("client", "user | token"), Shadow: true}
	for _, x := range []struct {
		rule                     *ratelimit.Rule
		lacking, refused, events uint64
		want                     string
	}{
		{one, 0, 0, 9, ""},
		{one, 9812, 0, 10000, "9,812 of 10,000 events had no api_key: the rule did not judge them"},
		{one, 1, 1, 1234567, "1 of 1,234,567 events had no api_key: the rule refused them"},
		{shadow, 10, 4, 100, "10 of 100 events had no client or no user and no token: the rule would have refused 4 of them, and did not judge the others"},
		{shadow, 4, 4, 100, "4 of 100 events had no client or no user and no token: the rule would have refused them"},
	} {
		if got := Lacking(x.rule, x.lacking, x.refused, x.events); got != x.want {
			t.Errorf("%q; want %q", got, x.want)
		}
	}
}
