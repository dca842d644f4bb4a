package enforce

import (
	"net/netip"
	"slices"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A skip is why a ban is not enforced.
type skip uint8

const (
	enforced   skip = iota
	over            // it has ended, or its rule was removed; not counted
	notAddress      // the key is not the client alone, or the client is not an address
	shadow          // the rule refuses nothing
	reserved        // an address that no client on the internet has
	protected       // on the allow list, or a trusted proxy
	tooWide
	noMemory
	skips // how many there are
)

// skipNames are in metrics and the log.
var skipNames = [skips]string{"", "", "not_address", "shadow", "reserved", "protected", "too_wide", "no_memory"}

// ruleSource is the source of bans that a rule began.
const ruleSource = "rule"

// The widest networks that are enforced for a rule. A wider one is rather a mistake, or the
// attempt of a client to have others refused.
const (
	minIPv4Bits = 16
	minIPv6Bits = 32
)

// networkOf returns the network that a ban of key under rule refuses. Only the client may
// name it: a user, too, could be called 192.0.2.1.
func networkOf(rule *ratelimit.Rule, key []string) (netip.Prefix, skip) {
	if rule.Key.ClientField() != 0 || len(rule.Key.Fields()) != 1 || len(key) != 1 {
		return netip.Prefix{}, notAddress
	}
	network, err := match.ParsePrefix(string(rule.Key.ClientOf(0, []byte(key[0]))))
	if err != nil {
		return netip.Prefix{}, notAddress
	}
	if rule.Shadow {
		return network, shadow
	}
	return network, enforced
}

// unroutable are networks that no client on the internet has. A log may name them
// nevertheless, and to refuse them could cut off the host itself.
var unroutable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// guard returns whether network, which was banned by hand or not, may be refused when the
// networks of safe may not.
func guard(network netip.Prefix, safe []netip.Prefix, byHand bool) skip {
	overlaps := func(p netip.Prefix) bool { return p.Overlaps(network) }
	bits := minIPv4Bits
	if network.Addr().Is6() {
		bits = minIPv6Bits
	}
	switch {
	case network.Bits() < bits && !byHand:
		return tooWide
	case slices.ContainsFunc(unroutable, overlaps):
		return reserved
	case slices.ContainsFunc(safe, overlaps):
		return protected
	}
	return enforced
}
