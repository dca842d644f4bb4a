package enforce

import (
	"net/netip"
	"testing"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Only the client of a rule whose key is the client alone names a network.
func TestNetworkOf(t *testing.T) {
	for _, tt := range []struct {
		fields []string
		shadow bool
		fold   match.Fold
		byHand bool
		key    []string
		want   string
		why    skip
	}{
		{fields: []string{"client"}, key: []string{"192.0.2.1"}, want: "192.0.2.1/32"},
		{fields: []string{"client"}, key: []string{"2001:db8::/64"}, want: "2001:db8::/64"},
		{fields: []string{"client"}, key: []string{"::ffff:192.0.2.1"}, why: notAddress}, // the rule folds it to 192.0.2.1
		{fields: []string{"client"}, key: []string{"203.0.0.0/16"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"203.0.0.0/16"}, byHand: true, want: "203.0.0.0/16"},
		{fields: []string{"client"}, key: []string{"203.0.113.5/32"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"203.0.113.5/32"}, byHand: true, why: notAddress},
		{fields: []string{"client"}, key: []string{"::ffff:203.0.113.0/120"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"2001:db8::/48"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"2001:db8::/48"}, byHand: true, want: "2001:db8::/48"},
		{fields: []string{"client"}, key: []string{"2001:db8::1"}, why: notAddress}, // the rule folds it to 2001:db8::/64
		{fields: []string{"client"}, key: []string{"2001:DB8::/64"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"2001:db8::%eth0"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"192.0.2.1:443"}, why: notAddress},
		{fields: []string{"client"}, key: []string{" 192.0.2.1"}, why: notAddress},
		{fields: []string{"client"}, fold: match.Fold{IPv4: 24}, key: []string{"203.0.113.0/24"}, want: "203.0.113.0/24"},
		{fields: []string{"client"}, fold: match.Fold{IPv4: 24}, key: []string{"203.0.0.0/16"}, why: notAddress},
		{fields: []string{"client"}, fold: match.Fold{IPv4: 24}, key: []string{"203.0.0.0/16"}, byHand: true, want: "203.0.0.0/16"},
		{fields: []string{"client"}, fold: match.Fold{IPv4: 24}, key: []string{"203.0.113.5"}, why: notAddress},
		{fields: []string{"client"}, fold: match.Fold{IPv4: 24}, key: []string{"203.0.113.5"}, byHand: true, why: notAddress},
		{fields: []string{"client"}, fold: match.Fold{IPv6: 128}, key: []string{"2001:db8::1"}, want: "2001:db8::1/128"},
		{fields: []string{"client"}, fold: match.Fold{Off: true}, key: []string{"192.0.2.1"}, want: "192.0.2.1/32"},
		{fields: []string{"client"}, fold: match.Fold{Off: true}, key: []string{"2001:db8::1"}, want: "2001:db8::1/128"},
		{fields: []string{"client"}, fold: match.Fold{Off: true}, key: []string{"203.0.0.0/16"}, byHand: true, why: notAddress},
		{fields: []string{"user | client"}, key: []string{"client:203.0.0.0/16"}, byHand: true, why: notAddress},
		{fields: []string{"user | client"}, key: []string{"client:192.0.2.1"}, want: "192.0.2.1/32"},
		{fields: []string{"client"}, key: []string{"192.0.2.1"}, want: "192.0.2.1/32", shadow: true, why: shadow},
		{fields: []string{"user | client"}, key: []string{"user:192.0.2.1"}, why: notAddress},
		{fields: []string{"user"}, key: []string{"192.0.2.1"}, why: notAddress},
		{fields: []string{"client", "user"}, key: []string{"192.0.2.1", "ada"}, why: notAddress},
		{fields: []string{"client", "user"}, key: []string{"192.0.2.1"}, why: notAddress},
		{fields: []string{"client"}, key: []string{"proxy:192.0.2.1"}, why: notAddress},
		{fields: []string{"client"}, key: nil, why: notAddress},
	} {
		key := must.Get(match.NewKey(tt.fold, tt.fields...))(t)
		network, why := networkOf(&ratelimit.Rule{Key: key, Shadow: tt.shadow}, tt.key, tt.byHand)
		if why != tt.why || tt.want != "" && network.String() != tt.want {
			t.Errorf("%q of %q with the fold %+v, by hand %v: %v, %s; want %q, %s", tt.key, tt.fields, tt.fold, tt.byHand, network, skipNames[why], tt.want, skipNames[tt.why])
		}
	}
}

// notClients are names that events may give as their client, and for which no address must be refused.
var notClients = []string{
	"0.0.0.0/0", "192.0.2.67\n", "x\n192.0.2.68", "192.0.2.69 ", "$(reboot); 192.0.2.66", "not an address", "", "-", "\n", "192.0.2.1;", "192.0.2.1 1;\ndefault",
	"0.0.0.0", "0.0.0.0/16", "127.0.0.1", "127.1.0.0/16", "10.0.0.0/8", "192.0.2.0/15", "169.254.169.254", "224.0.0.1", "255.255.255.255",
	"256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/24/24", "...", "192.0.2.70\x00",
	"::", "::1", "::/0", "::/64", "::/32", "0:0:0:1::/64", "2001::/16", "2000::/3", "2001:db8::/31", "fe80::1", "fe80::/64", "ff02::1", "2001:db8::/129",
	"2001:db8::1\n", "abc", "1:2", "dead:beef", "2001:DB8::%eth0", "2001:db8::1,10.0.0.0/8",
	"::ffff:127.0.0.1", "::ffff:0.0.0.0/96", "198.51.100.7", "198.51.100.0/24", "198.51.0.0/16", "203.0.113.0/24", "2001:db8:5::/48", "2001:db8:5:1::/64",
}

// unprotected has no network.
func unprotected(netip.Prefix) bool { return false }

// Whatever client a log names, no address is locked out.
func TestGuard(t *testing.T) {
	safe := address.NewSet(netip.MustParsePrefix("198.51.100.7/32"), netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("2001:db8:5::/48"))
	why := func(client string) skip {
		network, err := address.ParsePrefix(client)
		if err != nil {
			return notAddress
		}
		return guard(network, safe.Overlaps, false)
	}
	for _, client := range notClients {
		if why(client) == enforced {
			t.Errorf("%q would be refused", client)
		}
	}
	for client, want := range map[string]skip{
		"198.51.100.7": protected, "198.51.100.8": enforced, "198.51.100.0/25": protected, "203.0.113.16": enforced,
		"10.0.0.1": enforced, "192.0.0.0/16": enforced, "2001:db8::/32": protected, "2001:db9::/32": enforced, "127.0.0.1": reserved, "10.0.0.0/15": tooWide,
	} {
		if got := why(client); got != want {
			t.Errorf("%s: %q, want %q", client, skipNames[got], skipNames[want])
		}
	}
	for network, want := range map[string]skip{"10.0.0.0/8": enforced, "198.0.0.0/8": protected, "127.0.0.0/8": reserved, "2001::/16": protected} {
		if got := guard(netip.MustParsePrefix(network), safe.Overlaps, true); got != want {
			t.Errorf("%s by hand: %q, want %q", network, skipNames[got], skipNames[want])
		}
	}
}
