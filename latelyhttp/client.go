package latelyhttp

import (
	"net/netip"

	"github.com/lately-go/lately/internal/clientaddr"
)

// A Client is the sender of a request, as an [Identity] found it.
type Client struct {
	// Addr is the client's address, unmapped and without zone, or that of the
	// nearest trusted proxy when Source is NoHeader or BadHeader. It is
	// invalid on a Unix socket and when the peer is unknown.
	Addr netip.Addr

	// Source is where Addr comes from.
	Source Source

	plain bool // the text is that of Addr alone
}

// A Source says where a client's address comes from.
type Source uint8

const (
	FromPeer   = Source(clientaddr.FromPeer)   // the connection's peer, which is no trusted proxy
	FromHeader = Source(clientaddr.FromHeader) // the header of a trusted proxy
	NoHeader   = Source(clientaddr.NoHeader)   // a trusted proxy, which did not name its client
	BadHeader  = Source(clientaddr.BadHeader)  // a trusted proxy, which wrote something other than an address
	Unknown    = Source(clientaddr.Unknown)    // the peer has no address
	numSources = Unknown + 1
)

var sourceNames = [numSources]string{"peer", "header", "no header", "bad header", "unknown"}

// String returns the source in a word or two.
func (s Source) String() string {
	if s < numSources {
		return sourceNames[s]
	}
	return "source?"
}

// AppendTo appends the client as rules see it, the value of the event field
// "client": an address in its canonical text, "unix" for a peer on a Unix
// socket, "unknown" for one without address. If a trusted proxy did not name its
// client, the text begins with "proxy:".
func (c Client) AppendTo(dst []byte) []byte {
	return c.inner().AppendTo(dst)
}

func (c Client) inner() clientaddr.Client {
	return clientaddr.Client{Addr: c.Addr, Source: clientaddr.Source(c.Source), Plain: c.plain}
}

// String returns what AppendTo appends.
func (c Client) String() string { return string(c.AppendTo(nil)) }
