package ratelimit_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func clientEvent(client string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, client)
	return e
}

// TestBanOfANetwork bans and unbans random networks, and compares the decision about a random client with a list of all
// networks; some bans go through an export.
func TestBanOfANetwork(t *testing.T) {
	rnd := randtest.New(t)
	rule := ratelimit.Rule{Name: "limit", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1_000_000, time.Minute)}}
	l := mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
	at := time.Unix(1_700_000_000, 0)
	banned := map[netip.Prefix]time.Time{}
	address := func() netip.Addr {
		if rnd.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{198, 51, byte(rnd.IntN(4)), byte(rnd.IntN(256))})
		}
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(rnd.IntN(4)), 0, byte(rnd.IntN(4)), 15: byte(rnd.IntN(3))})
	}
	met := 0
	for i := range 20_000 {
		at = at.Add(time.Duration(rnd.IntN(100)) * time.Millisecond)
		a := address()
		lengths := []int{8, 16, 23, 24, 31}
		if a.Is6() {
			lengths = []int{16, 32, 46, 48, 63}
		}
		p := netip.PrefixFrom(a, lengths[rnd.IntN(5)]).Masked()
		if p.Bits() < 23 && rnd.IntN(20) > 0 {
			continue
		}
		switch rnd.IntN(40) {
		case 0:
			until := at.Add(time.Duration(1+rnd.IntN(5)) * time.Second)
			must.Do(t, l.BansAt(at).Add(ratelimit.BanRecord{Rule: "limit", Key: []string{fmt.Sprintf("%s/%d", a, p.Bits())}, Until: until}))
			if until.After(banned[p]) {
				banned[p] = until
			}
		case 1:
			held, err := l.BansAt(at).Remove("limit", p.String())
			if want := at.Before(banned[p]); err != nil || held != want {
				t.Fatalf("event %d: a ban of %s held: %v, %v; the list has %v", i, p, held, err, want)
			}
			delete(banned, p)
		case 2:
			was := l
			l = mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
			for chunk := range was.ExportAt(at) {
				must.Get(l.ImportAt(at, chunk))(t)
			}
		}
		var until time.Time
		for p, end := range banned {
			if p.Contains(a) && at.Before(end) && end.After(until) {
				until = end
			}
		}
		d := l.TakeAt(at, clientEvent(a.String()), 1)
		if d.Allowed != until.IsZero() || !d.BannedUntil.Equal(until) {
			t.Fatalf("event %d of %s: %+v; it is banned until %v by %v", i, a, d, until, banned)
		}
		record, held, err := l.BansAt(at).Get("limit", a.String())
		if err != nil || held != !d.Allowed {
			t.Fatalf("event %d of %s: a ban is listed: %v, %v; it is banned: %v", i, a, held, err, !d.Allowed)
		}
		if held {
			met++
			if around := netip.MustParsePrefix(record.Key[0]); !around.Contains(a) {
				t.Fatalf("for %s the list has the ban of %s", a, around)
			}
		}
	}
	if met < 1000 {
		t.Errorf("only %d events were of banned networks", met)
	}
}

// TestNetworkBanAllocatesNothing decides about clients while a network is banned.
func TestNetworkBanAllocatesNothing(t *testing.T) {
	l := mustLimiter(t, mustSet(t, ratelimit.Rule{Name: "limit", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1_000_000, time.Minute)}}), ratelimit.Config{})
	must.Do(t, l.Bans().Add(ratelimit.BanRecord{Rule: "limit", Key: []string{"192.0.2.0/24"}, Until: l.Now().Add(time.Hour)}))
	for _, client := range []string{"192.0.2.1", "203.0.113.1", "2001:db8::1"} {
		e := clientEvent(client)
		l.Take(e)
		if n := testing.AllocsPerRun(500, func() { l.Take(e) }); n != 0 {
			t.Errorf("%s: %v allocations", client, n)
		}
	}
}

// TestNetworksAroundAClient bans several networks that contain a client: a decision and the list
// have the ban that ends last.
func TestNetworksAroundAClient(t *testing.T) {
	rule := ratelimit.Rule{Name: "limit", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1_000_000, time.Minute)}}
	at := time.Unix(1_700_000_000, 0)
	for _, networks := range [][]string{{"192.0.2.0/24", "192.0.0.0/16", "192.0.2.0/30"}, {"192.0.0.0/16", "192.0.2.0/30", "192.0.2.0/24"}} {
		l := mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
		for i, network := range networks {
			must.Do(t, l.BansAt(at).Add(ratelimit.BanRecord{Rule: "limit", Key: []string{network}, Until: at.Add([]time.Duration{1, 3, 2}[i] * time.Hour)}))
		}
		d := l.PeekN(at, clientEvent("192.0.2.1"), 1)
		r, held, err := l.BansAt(at).Get("limit", "192.0.2.1")
		if want := at.Add(3 * time.Hour); err != nil || !held || r.Key[0] != networks[1] || !r.Until.Equal(want) || !d.BannedUntil.Equal(want) {
			t.Errorf("networks %v: banned until %v, listed as %+v, %v, %v; want %s until %v", networks, d.BannedUntil, r, held, err, networks[1], want)
		}
	}
}

// TestClientInABannedNetwork bans a client, by hand or by its rule, and a network that contains it: a decision has the ban
// that ends last, also if its hits extend the other.
func TestClientInABannedNetwork(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, extend := range []bool{false, true} {
		rule := ratelimit.Rule{Name: "flood", Key: foldedKey(t, "client"), Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Hour, Extend: extend}}
		for _, other := range []time.Duration{time.Minute, 2 * time.Hour} {
			l := mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
			l.TakeAt(at, clientEvent("192.0.2.1"), 1)
			l.TakeAt(at, clientEvent("192.0.2.1"), 1) // begins a ban of an hour
			must.Do(t, l.BansAt(at).Add(ratelimit.BanRecord{Rule: "flood", Key: []string{"192.0.2.0/24"}, Until: at.Add(other)}))
			want := at.Add(max(time.Hour, other))
			for _, d := range []ratelimit.Decision{l.PeekN(at, clientEvent("192.0.2.1"), 1), l.TakeAt(at, clientEvent("192.0.2.1"), 1)} {
				if d.Allowed || !d.BannedUntil.Equal(want) || d.RetryAfter != want.Sub(at) {
					t.Errorf("extend %v, the network for %v: %+v, want a ban until %v", extend, other, d, want)
				}
			}
		}
	}
}

// TestClientNamedLikeANetwork bans, by events, clients whose names read as networks, beside
// networks that are banned by hand: no address is refused for such a name, also after an
// export, a copy of the bans as text and a change of the rules, and neither ban ends the other.
func TestClientNamedLikeANetwork(t *testing.T) {
	rule := ratelimit.Rule{
		Name: "flood", Key: foldedKey(t, "client"), Limits: []ratelimit.Limit{per(1, time.Minute)},
		Ban: &ratelimit.Ban{Of: ratelimit.Refusals, After: 1, Span: time.Minute, For: time.Hour},
	}
	at := time.Unix(1_700_000_000, 0)
	fresh := func() *ratelimit.Limiter { return mustLimiter(t, mustSet(t, rule), ratelimit.Config{}) }
	l := fresh()
	named := []string{"203.0.0.0/16", "203.0.113.0/24", "203.0.113.5/32", "::ffff:203.0.113.0/120", "2001:db8::/32", "2001:DB8:1::/64", "2001:db8::/48", "203.0.113.5 ", "203.0.113.5/", "0.0.0.0/0"}
	for _, name := range named {
		for range 5 {
			l.TakeAt(at, clientEvent(name), 1)
		}
		if d := l.TakeAt(at, clientEvent(name), 1); d.BannedUntil.IsZero() {
			t.Fatalf("%q is not banned: %+v", name, d)
		}
	}
	// These lengths are looked up from now on.
	for _, network := range []string{"198.51.0.0/16", "198.51.100.0/24", "2001:db9::/32", "2001:db9::/48", "203.0.114.0/24"} {
		must.Do(t, l.BansAt(at).Add(ratelimit.BanRecord{Rule: "flood", Key: []string{network}, Until: at.Add(time.Hour)}))
	}
	refused := func(when string, l *ratelimit.Limiter, clients ...string) {
		t.Helper()
		for _, c := range clients {
			if d := l.PeekN(at, clientEvent(c), 1); d.Allowed {
				t.Errorf("%s: %q is allowed", when, c)
			}
		}
	}
	allowed := func(when string, l *ratelimit.Limiter, clients ...string) {
		t.Helper()
		for _, c := range clients {
			if d := l.PeekN(at, clientEvent(c), 1); !d.Allowed {
				t.Errorf("%s: %q is refused until %v", when, c, d.BannedUntil)
			}
		}
	}
	check := func(when string, l *ratelimit.Limiter) {
		t.Helper()
		allowed(when, l, "203.0.1.1", "203.0.113.9", "203.0.113.5", "::ffff:203.0.113.77", "203.0.113.5:443", "2001:db8::1", "[2001:db8:1::1]:80", "2001:db8:0:5::1%eth0")
		refused(when, l, named...)
		refused(when, l, "198.51.7.1", "198.51.100.1:443", "203.0.114.1", "::ffff:203.0.114.2", "2001:db9::1%eth0", "[2001:db9::2]:80")
	}
	check("at first", l)

	restored := fresh()
	for chunk := range l.ExportAt(at) {
		must.Get(restored.ImportAt(at, chunk))(t)
	}
	check("restored", restored)

	imported, added := fresh(), 0
	for b, err := range l.BansAt(at).All() {
		if err != nil {
			t.Fatal(err)
		}
		if added++; imported.BansAt(at).Restore(b) != nil {
			t.Fatalf("%+v was not restored", b)
		}
	}
	if added != len(named)+5 {
		t.Fatalf("%d bans, want %d", added, len(named)+5)
	}
	check("imported", imported)

	other := rule
	other.Limits = []ratelimit.Limit{per(2, time.Minute)}
	must.Do(t, l.Update(mustSet(t, other)))
	check("after a change of the rules", l)
	if s := l.Stats(); s.Rules[0].Bans != len(named)+5 {
		t.Errorf("%d bans are counted, want %d", s.Rules[0].Bans, len(named)+5)
	}

	// A network is banned by hand while a client with the same name is banned: both bans last until their own ends.
	must.Do(t, l.BansAt(at).Add(ratelimit.BanRecord{Rule: "flood", Key: []string{"203.0.113.0/24"}, Until: at.Add(time.Minute)}))
	refused("banned by hand too", l, "203.0.113.9", "203.0.113.0/24")
	if r, held, err := l.BansAt(at).Get("flood", "203.0.113.0/24"); err != nil || !held || r.Source == "rule" {
		t.Errorf("listed is %+v, %v, %v; want the ban by hand", r, held, err)
	}
	at = at.Add(2 * time.Minute)
	allowed("after the end of the ban by hand", l, "203.0.113.9")
	refused("after the end of the ban by hand", l, "203.0.113.0/24")
	if held, err := l.BansAt(at).Remove("flood", "203.0.113.0/24"); err != nil || !held {
		t.Errorf("no ban ended: %v, %v", held, err)
	}
	allowed("unbanned", l, "203.0.113.0/24")
}
