package ratelimit_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func clientEvent(client string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Client, client)
	return e
}

// TestBanOfANetwork bans and unbans random networks, and compares the decision about a
// random client with a list of all networks; some bans go through an export.
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
			if err := l.Bans().At(at).Add(ratelimit.BanRecord{Rule: "limit", Key: []string{fmt.Sprintf("%s/%d", a, p.Bits())}, Until: until}); err != nil {
				t.Fatal(err)
			}
			if until.After(banned[p]) {
				banned[p] = until
			}
		case 1:
			held, err := l.Bans().At(at).Remove("limit", p.String())
			if want := at.Before(banned[p]); err != nil || held != want {
				t.Fatalf("event %d: a ban of %s held: %v, %v; the list has %v", i, p, held, err, want)
			}
			delete(banned, p)
		case 2:
			was := l
			l = mustLimiter(t, mustSet(t, rule), ratelimit.Config{})
			for chunk := range was.Export(at) {
				if _, err := l.Import(at, chunk); err != nil {
					t.Fatal(err)
				}
			}
		}
		var until time.Time
		for p, end := range banned {
			if p.Contains(a) && at.Before(end) && end.After(until) {
				until = end
			}
		}
		d := l.TakeN(at, clientEvent(a.String()), 1)
		if d.Allowed != until.IsZero() || !d.BannedUntil.Equal(until) {
			t.Fatalf("event %d of %s: %+v; it is banned until %v by %v", i, a, d, until, banned)
		}
		record, held, err := l.Bans().At(at).Get("limit", a.String())
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
	if err := l.Bans().Add(ratelimit.BanRecord{Rule: "limit", Key: []string{"192.0.2.0/24"}, Until: l.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{"192.0.2.1", "203.0.113.1", "2001:db8::1"} {
		e := clientEvent(client)
		l.Take(e)
		if n := testing.AllocsPerRun(500, func() { l.Take(e) }); n != 0 {
			t.Errorf("%s: %v allocations", client, n)
		}
	}
}
