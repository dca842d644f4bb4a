package ratelimit_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestBanOfAllowedPrefix bans clients on the allow list under a rule that folds addresses: an address, its prefix, and an
// address that is on the list while the rest of its prefix is not. None is banned, by hand or after a restart.
func TestBanOfAllowedPrefix(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: []netip.Prefix{
		netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2001:db9::7/128"),
	}}, ratelimit.Rule{Name: "r", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1, time.Minute)}}))(t)
	for client, allowed := range map[string]bool{
		"2001:db8::1": true, "2001:db8:1:2::/64": true, "2001:db9::7": true, "2001:db9::8": false, "2001:dba::/64": false,
	} {
		l := mustLimiter(t, set, ratelimit.Config{})
		ban := ratelimit.BanRecord{Rule: "r", Key: []string{client}, Until: l.Now().Add(time.Hour)}
		if err := l.Bans().Add(ban); (err != nil) != allowed || allowed && !strings.Contains(err.Error(), "on the allow list") {
			t.Errorf("Ban of %s: %v", client, err)
		}
		other := mustLimiter(t, set, ratelimit.Config{})
		if err := other.Internal().RestoreBan(ban); err != nil {
			t.Errorf("restore of %s: %v", client, err)
		}
		for _, l := range []*ratelimit.Limiter{l, other} {
			if got := listed(t, l); (len(got) == 0) != allowed {
				t.Errorf("%s: %d bans", client, len(got))
			}
		}
	}
}
