package engine

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
)

// A KeyFilter selects keys. A key is selected if it satisfies every field that is set;
// the zero KeyFilter selects all.
type KeyFilter struct {
	// Pattern is a glob as [Glob] takes it. It must match one value of the key, or,
	// for a key of several values, all of them joined by KeySeparator.
	Pattern string

	// Network must contain one value of the key, which is an address or a network.
	Network netip.Prefix
}

// ParseKeyFilter returns the filter of these texts, of which those that are empty are
// not set. Its error is an [*Error].
func ParseKeyFilter(pattern, network string) (f KeyFilter, err error) {
	if len(pattern) > MaxKey {
		return f, errorf(api.BadArg, "pattern: too long: %d bytes (max %d)", len(pattern), MaxKey)
	}
	f.Pattern = pattern
	if network != "" {
		if f.Network, err = match.ParsePrefix(network); err != nil {
			return f, errorf(api.BadArg, "network: %.64q: must be an address or a network such as 192.0.2.0/24", network)
		}
	}
	return f, nil
}

// selects reports whether f selects the key of these values.
func (f *KeyFilter) selects(key []string) bool {
	return (f.Pattern == "" || f.matches(key)) && (!f.Network.IsValid() || slices.ContainsFunc(key, f.contains))
}

func (f *KeyFilter) matches(key []string) bool {
	return slices.ContainsFunc(key, func(v string) bool { return Glob(f.Pattern, v) }) ||
		len(key) > 1 && Glob(f.Pattern, strings.Join(key, string(KeySeparator)))
}

func (f *KeyFilter) contains(value string) bool {
	p, err := match.ParsePrefix(value)
	return err == nil && p.Bits() >= f.Network.Bits() && f.Network.Contains(p.Addr())
}
