package match

import (
	"fmt"
	"net/netip"

	"github.com/lately-go/lately/internal/address"
)

// Fold makes the key of a client from its address, so that one client has one key
// however its address is written.
//
// An IPv4-mapped IPv6 address (::ffff:192.0.2.1) is the IPv4 address, in every
// notation. A port (192.0.2.1:443, [2001:db8::1]:443), brackets and a zone are
// removed. The address is then cut to its prefix: an IPv6 customer usually owns a
// /64, which counts as one client. Other text (a host name, an API key) is not
// changed.
//
// The zero Fold is the default: IPv4 addresses whole, IPv6 addresses by /64.
type Fold struct {
	IPv4 int  // prefix length, 1 to 32; 0 means 32
	IPv6 int  // prefix length, 1 to 128; 0 means 64
	Off  bool // keys are the unchanged text; paths are not cleaned either
}

// validate returns an error about the first field that is out of range.
func (f Fold) validate() error {
	if f.IPv4 < 0 || f.IPv4 > 32 {
		return fmt.Errorf("ipv4: prefix length %d: must be 1 to 32", f.IPv4)
	}
	if f.IPv6 < 0 || f.IPv6 > 128 {
		return fmt.Errorf("ipv6: prefix length %d: must be 1 to 128", f.IPv6)
	}
	return nil
}

func (f Fold) bits(a netip.Addr) int {
	switch {
	case a.Is4() && f.IPv4 == 0:
		return 32
	case a.Is4():
		return f.IPv4
	case f.IPv6 == 0:
		return 64
	}
	return f.IPv6
}

// Append appends the key of client to dst: the folded address in its canonical text, with "/bits"
// if it was cut, or any other text unchanged. It allocates only to grow dst.
func (f Fold) Append(dst, client []byte) []byte {
	if f.Off {
		return append(dst, client...)
	}
	if f.IPv4 == 0 || f.IPv4 == 32 {
		if address.IsIPv4(text(client)) {
			return append(dst, client...)
		}
	}
	a, ok := address.Parse(text(client))
	if !ok {
		return append(dst, client...)
	}
	bits := f.bits(a)
	if bits == a.BitLen() {
		return a.AppendTo(dst)
	}
	p, _ := a.Prefix(bits) // no error: see validate
	return p.AppendTo(dst)
}
