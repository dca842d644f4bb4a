package latelyhttp

import "net/netip"

// A Client is the sender of a request, as an [Identity] found it.
type Client struct {
	// Addr is the client's address, unmapped and without zone, or the address of the
	// nearest trusted proxy when Source is NoHeader or BadHeader. It is
	// invalid on a Unix socket and when the peer is unknown.
	Addr netip.Addr

	// Source is the origin of Addr.
	Source Source

	plain bool // the text has no "proxy:" in front
}

// A Source is the origin of a client's address.
type Source uint8

const (
	FromPeer   Source = iota // the connection's peer, which is not a trusted proxy
	FromHeader               // the header of a trusted proxy
	NoHeader                 // a trusted proxy, which did not name its client
	BadHeader                // a trusted proxy, which wrote something other than an address
	Unknown                  // the peer has no address
	numSources
)

var sourceNames = [numSources]string{"peer", "header", "no header", "bad header", "unknown"}

// String returns the source in a word or two.
func (s Source) String() string {
	if s < numSources {
		return sourceNames[s]
	}
	return "source?"
}

// maxClientText is enough for every text that AppendTo makes.
const maxClientText = len("proxy:") + len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

// AppendTo appends the client as rules see it, the value of the event field
// "client": an address in its canonical text, "unix" for a peer on a Unix
// socket, "unknown" without an address. If a trusted proxy did not name its
// client, the text begins with "proxy:", so that it matches no allow list.
func (c Client) AppendTo(dst []byte) []byte {
	if !c.plain && (c.Source == NoHeader || c.Source == BadHeader) {
		dst = append(dst, "proxy:"...)
	}
	switch {
	case c.Addr.IsValid():
		return c.Addr.AppendTo(dst)
	case c.Source == Unknown:
		return append(dst, "unknown"...)
	}
	return append(dst, "unix"...)
}

// String returns what AppendTo appends.
func (c Client) String() string { return string(c.AppendTo(nil)) }
