package match

import "fmt"

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
