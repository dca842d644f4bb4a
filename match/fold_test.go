package match

import "testing"

func TestFold(t *testing.T) {
	for _, c := range []struct {
		fold         Fold
		client, want string
	}{
		{Fold{}, "192.0.2.1", "192.0.2.1"},
		{Fold{}, "::ffff:192.0.2.1", "192.0.2.1"},
		{Fold{}, "::FFFF:C000:0201", "192.0.2.1"},
		{Fold{}, "::192.0.2.1", "::/64"}, // compatible, not mapped
		{Fold{}, "2001:db8::1", "2001:db8::/64"},
		{Fold{}, "2001:DB8:0:0:ffff::1", "2001:db8::/64"},
		{Fold{}, "fe80::1%eth0", "fe80::/64"},
		{Fold{}, "fe80::1%", "fe80::1%"}, // no address
		{Fold{}, "::", "::/64"},
		{Fold{IPv6: 56}, "2001:db8:1:2ff::1", "2001:db8:1:200::/56"},
		{Fold{IPv6: 128}, "2001:DB8:0:0::1", "2001:db8::1"},
		{Fold{IPv6: 1}, "ffff::", "8000::/1"},
		{Fold{IPv4: 24}, "192.0.2.1", "192.0.2.0/24"},
		{Fold{IPv4: 24}, "::ffff:192.0.2.1", "192.0.2.0/24"},
		{Fold{IPv4: 1}, "192.0.2.1", "128.0.0.0/1"},
		{Fold{}, "192.0.2.01", "192.0.2.01"}, // no address: a leading zero
		{Fold{}, "[2001:db8::1]", "2001:db8::/64"},
		{Fold{}, "[2001:db8::1]:443", "2001:db8::/64"},
		{Fold{}, "[fe80::1%eth0]:443", "fe80::/64"},
		{Fold{}, "[::ffff:192.0.2.1]:5556", "192.0.2.1"},
		{Fold{}, "192.0.2.1:5556", "192.0.2.1"},
		{Fold{IPv4: 24}, "192.0.2.1:65535", "192.0.2.0/24"},
		{Fold{}, "192.0.2.1:http", "192.0.2.1:http"},
		{Fold{}, "[www.example.com]:443", "[www.example.com]:443"},
		{Fold{}, "key-abcdef:1234", "key-abcdef:1234"},
		{Fold{Off: true}, "192.0.2.1:5556", "192.0.2.1:5556"},
		{Fold{}, "www.example.com", "www.example.com"},
		{Fold{}, "key-1234", "key-1234"},
		{Fold{Off: true}, "::ffff:192.0.2.1", "::ffff:192.0.2.1"},
		{Fold{Off: true, IPv4: 24}, "192.0.2.1", "192.0.2.1"},
	} {
		k := newKey(t, c.fold, "client")
		var e Event
		e.SetString(Client, c.client)
		if got, ok := k.Append(nil, &e); !ok || string(got) != c.want {
			t.Errorf("%+v: the key of %q is %q; want %q", c.fold, c.client, got, c.want)
		}
	}
}

func TestFoldValidate(t *testing.T) {
	for _, f := range []Fold{{}, {IPv4: 1, IPv6: 1}, {IPv4: 32, IPv6: 128}, {Off: true}} {
		if err := f.validate(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for want, f := range map[string]Fold{
		"ipv4: prefix length 33: must be 1 to 32":   {IPv4: 33},
		"ipv4: prefix length -1: must be 1 to 32":   {IPv4: -1},
		"ipv6: prefix length 129: must be 1 to 128": {IPv6: 129},
		"ipv6: prefix length -1: must be 1 to 128":  {IPv6: -1},
	} {
		if err := f.validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v; want %s", f, err, want)
		}
	}
}
