package replay

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
)

// forwardedFor is the field of events that has the X-Forwarded-For of the request.
const forwardedFor = "x_forwarded_for"

// newIdentity returns the Identity that finds clients behind proxies, nil if there are
// none. Events can have these fields.
func newIdentity(proxies []netip.Prefix, fields []string) (*latelyhttp.Identity, error) {
	if len(proxies) == 0 {
		return nil, nil
	}
	if !slices.Contains(fields, forwardedFor) {
		return nil, errors.New("--trusted-proxy: the format has no field " + forwardedFor + ": must be one that has it, such as an nginx: format with $http_x_forwarded_for")
	}
	for _, p := range proxies {
		if p.Bits() == 0 {
			return nil, errors.New("--trusted-proxy: " + p.String() + ": trusts every address that a client claims: must be the networks of the proxies")
		}
	}
	return latelyhttp.NewIdentity(latelyhttp.IdentityConfig{TrustedProxies: proxies})
}

// findClient gives the worker's event the client that a live request with its client as
// the peer, and its X-Forwarded-For, would have. A client that is no address stays.
func (w *worker) findClient() {
	peer, ok := match.ParseAddr(string(w.event.Get(match.Client)))
	if !ok {
		return
	}
	var lines []string
	if list := w.event.GetNamed(forwardedFor); len(list) > 0 {
		lines = []string{string(list)}
	}
	client := w.run.identity.ClientOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(peer, 0)), lines)
	w.event.Set(match.Client, client.AppendTo(nil))
}
