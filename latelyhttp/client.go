package latelyhttp

import (
	"net/http"
	"net/netip"
)

// A Client is the sender of a request, as an [Identity] found it.
type Client struct {
	// Addr is the client's address, unmapped and without zone, or the address of the
	// nearest trusted proxy if that did not name its client. It is invalid on a Unix
	// socket and when the peer is unknown.
	Addr netip.Addr

	origin origin
	plain  bool // the text has no "proxy:" in front
}

// An origin is where a client's address is from.
type origin uint8

const (
	fromPeer   origin = iota // the connection's peer, which is not a trusted proxy
	fromHeader               // the header of a trusted proxy
	noHeader                 // a trusted proxy, which did not name its client
	badHeader                // a trusted proxy, which wrote something other than an address
	unknown                  // the peer has no address
)

// Proxied reports whether a trusted proxy has sent the request.
func (c Client) Proxied() bool { return c.origin != fromPeer && c.origin != unknown }

// maxClientText is enough for every text that AppendTo makes.
const maxClientText = len("proxy:") + len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

// AppendTo appends the client as rules see it, the value of the event field
// "client": an address in its canonical text, "unix" for a peer on a Unix
// socket, "unknown" without an address. If a trusted proxy did not name its
// client, the text begins with "proxy:", so that it matches no allow list.
func (c Client) AppendTo(dst []byte) []byte {
	if !c.plain && (c.origin == noHeader || c.origin == badHeader) {
		dst = append(dst, "proxy:"...)
	}
	switch {
	case c.Addr.IsValid():
		return c.Addr.AppendTo(dst)
	case c.origin == unknown:
		return append(dst, "unknown"...)
	}
	return append(dst, "unix"...)
}

// String returns what AppendTo appends.
func (c Client) String() string { return string(c.AppendTo(nil)) }

// A sender is the client of a request, which is found once, when it is asked for.
type sender struct {
	request  *http.Request
	identity *Identity
	found    Client
	known    bool
}

func (s *sender) client() Client {
	if !s.known {
		s.found, s.known = s.identity.Client(s.request), true
	}
	return s.found
}

// AppendTo appends the client, see [Client.AppendTo].
func (s *sender) AppendTo(dst []byte) []byte { return s.client().AppendTo(dst) }
