package enforce

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// banner is a limiter that counts by client, in which each client can be banned.
func banner(t *testing.T, fold match.Fold) *ratelimit.Limiter {
	t.Helper()
	key, err := match.NewKey(fold, "client")
	if err != nil {
		t.Skip(err)
	}
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, ratelimit.Rule{
		Name: "client", Key: key, Limits: []ratelimit.Limit{{N: 1, Span: time.Minute}},
		Ban: &ratelimit.Ban{Of: ratelimit.Refusals, After: 1, Span: time.Minute, For: time.Hour},
	}))(t)
	return must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Budget: 4 << 20}))(t)
}

// named returns an event that names its client.
func named(client string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, client)
	return e
}

// ends returns the first and the last address of a network, and one between.
func ends(p netip.Prefix) []netip.Addr {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for bit := p.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	last[len(last)-1] &^= 2
	between, _ := netip.AddrFromSlice(last)
	if !p.Contains(between) {
		between = first
	}
	return []netip.Addr{first, between, end}
}

// enforcedOf returns the networks that an Enforcer refuses for all bans of l.
func enforcedOf(t *testing.T, l *ratelimit.Limiter, at time.Time) (networks []netip.Prefix) {
	t.Helper()
	e := must.Get(New(Config{
		Rule: l.Set().Named, Protected: unprotected, Now: func() time.Time { return at },
		MaxNetworks: 100, Log: slog.New(slog.DiscardHandler),
	}))(t)
	for r, err := range l.BansAt(at).All() {
		if err != nil {
			t.Fatal(err)
		}
		e.Add(&api.Ban{Rule: r.Rule, Key: api.KeyOf(r.Key...), Since: r.Since, Until: r.Until, Source: r.Source})
	}
	changes, _ := e.bans.after(0, 0)
	for _, c := range changes {
		networks = append(networks, c.network)
	}
	return networks
}

// checkEnforced bans a client of that name, by events or by hand, in a limiter that has banned other networks. Each
// enforced address is then refused by the limiter itself; and the address named by an event is enforced.
func checkEnforced(t *testing.T, client string, fold match.Fold, byHand bool) {
	t.Helper()
	l, at := banner(t, fold), time.Unix(1_700_000_000, 0)
	if !fold.Off {
		for _, network := range []string{"5.5.0.0/16", "5.0.0.0/8", "2001:d000::/20"} { // lengths that are looked up
			_ = l.BansAt(at).Add(ratelimit.BanRecord{Rule: "client", Key: []string{network}, Until: at.Add(time.Hour)})
		}
	}
	if byHand {
		_ = l.BansAt(at).Add(ratelimit.BanRecord{Rule: "client", Key: []string{client}, Until: at.Add(time.Hour)})
	} else {
		for range 4 {
			l.TakeAt(at, named(client), 1)
		}
	}
	networks := enforcedOf(t, l, at)
	for _, network := range networks {
		for _, a := range ends(network) {
			if d, _ := l.Internal().JudgeAt(at, &batch.Query{Event: named(a.String()), Cost: 1, Peek: true}, nil); d.BannedUntil.IsZero() {
				t.Errorf("%q with the fold %+v, by hand %v: %v is enforced, but the limiter allows %v", client, fold, byHand, network, a)
			}
		}
	}
	addr, ok := address.Parse(client)
	if !ok || byHand || fold.Off {
		return
	}
	bits := l.Set().Rules()[0].Key.Fold().IPv4
	if addr.Is6() {
		bits = l.Set().Rules()[0].Key.Fold().IPv6
	}
	network, _ := addr.Prefix(bits)
	if guard(network, unprotected, false) == enforced && !slices.ContainsFunc(networks, network.Overlaps) {
		t.Errorf("%q with the fold %+v: %v is not enforced", client, fold, network)
	}
}

// Whatever an event or an operator names as a client, nothing is enforced that the server
// itself allows.
func FuzzEnforcedNetwork(f *testing.F) {
	for _, client := range append(notClients, "203.0.113.5", "203.0.0.0/16", "203.0.113.0/24", "::ffff:203.0.113.5", "::ffff:203.0.113.0/120", "203.0.113.5/32", "203.0.113.5:443",
		"[2a00::1]:443", "2a00::1%eth0", "2a00:1::/64", "2A00:1::/64", "2a00::/32", "2a00:1::1/128", " 203.0.113.5", "203.0.113.5 ", "proxy:203.0.113.5", "unknown") {
		for _, byHand := range []bool{false, true} {
			f.Add(client, uint8(32), uint8(64), false, byHand)
			f.Add(client, uint8(24), uint8(48), false, byHand)
			f.Add(client, uint8(16), uint8(128), false, byHand)
			f.Add(client, uint8(0), uint8(0), true, byHand)
		}
	}
	f.Fuzz(func(t *testing.T, client string, ipv4, ipv6 uint8, off, byHand bool) {
		fold := match.Fold{IPv4: int(ipv4 % 33), IPv6: int(ipv6 % 129)}
		if off {
			fold = match.Fold{Off: true}
		}
		checkEnforced(t, client, fold, byHand)
	})
}
