package latelyhttp

import (
	"net"
	"net/netip"

	"github.com/lately-go/lately/match"
)

// ForwardedForField is the field of events of a log that has the X-Forwarded-For of the
// request.
const ForwardedForField = "x_forwarded_for"

// SetClient gives ev, an event of a log, the client that [Identity.Client] returns for the
// request: with ev's client as the peer, and its ForwardedForField. A client that is no
// address stays.
func (id *Identity) SetClient(ev *match.Event) {
	peer, ok := match.ParseAddr(string(ev.Get(match.Client)))
	if !ok {
		return
	}
	var lines []string
	if list := ev.GetNamed(ForwardedForField); len(list) > 0 {
		lines = []string{string(list)}
	}
	client := id.ClientOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(peer, 0)), lines)
	ev.Set(match.Client, client.AppendTo(nil))
}
