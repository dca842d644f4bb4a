package replay

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/lately-go/lately/latelyhttp"
)

// newIdentity returns the Identity that finds clients behind proxies, nil if there are
// none. Events can have these fields.
func newIdentity(proxies []netip.Prefix, fields []string) (*latelyhttp.Identity, error) {
	if len(proxies) == 0 {
		return nil, nil
	}
	if !slices.Contains(fields, latelyhttp.ForwardedForField) {
		return nil, errors.New("--trusted-proxy: the format has no field " + latelyhttp.ForwardedForField + ": must be one that has it, such as an nginx: format with $http_x_forwarded_for")
	}
	for _, p := range proxies {
		if p.Bits() == 0 {
			return nil, errors.New("--trusted-proxy: " + p.String() + ": trusts every address that a client claims: must be the networks of the proxies")
		}
	}
	return latelyhttp.NewIdentity(latelyhttp.IdentityConfig{TrustedProxies: proxies})
}
