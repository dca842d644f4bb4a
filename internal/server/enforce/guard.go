package enforce

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
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

// networkOf returns the network whose clients are all refused by a ban of key under rule, by hand or not. Only the client may name it: a user, too, could be called 192.0.2.1. A client is an
// address, or the network that the rule makes of one. Whoever sends an event may call its client
// 192.0.2.0/24: that is a name, which no address has.
func networkOf(rule *ratelimit.Rule, key []string, byHand bool) (netip.Prefix, skip) {
	if keyvalue.ClientIndex(rule.Key) != 0 || len(rule.Key.Fields()) != 1 || len(key) != 1 {
		return netip.Prefix{}, notAddress
	}
	client := keyvalue.Client(rule.Key.Fields()[0], []byte(key[0]))
	network, err := address.ParsePrefix(string(client))
	if err != nil || !isClient(rule, network, client) && !(byHand && hasClients(rule, network)) {
		return netip.Prefix{}, notAddress
	}
	if rule.Shadow {
		return network, shadow
	}
	return network, enforced
}

// isClient reports whether the addresses of network, and no others, are the client in a key.
func isClient(rule *ratelimit.Rule, network netip.Prefix, client []byte) bool {
	return bytes.Equal(keyvalue.AppendClient(nil, rule.Key.Fold(), network.Addr().AppendTo(nil)), client)
}

// hasClients reports whether network has several clients of rule, which a ban by hand then
// refuses.
func hasClients(rule *ratelimit.Rule, network netip.Prefix) bool {
	fold := rule.Key.Fold()
	bits := fold.IPv4
	if network.Addr().Is6() {
		bits = fold.IPv6
	}
	return len(keyvalue.Fields(rule.Key)) == 1 && network.Bits() < bits
}

// unroutable are networks that no client on the internet has. A log may name them
// nevertheless, and to refuse them could cut off the host itself.
var unroutable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// guard returns whether network, which was banned by hand or not, may be refused when the
// networks that isProtected reports may not.
func guard(network netip.Prefix, isProtected func(netip.Prefix) bool, byHand bool) skip {
	bits := minIPv4Bits
	if network.Addr().Is6() {
		bits = minIPv6Bits
	}
	switch {
	case network.Bits() < bits && !byHand:
		return tooWide
	case slices.ContainsFunc(unroutable, network.Overlaps):
		return reserved
	case isProtected(network):
		return protected
	}
	return enforced
}
