package crawlers

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
)

// TestImport takes crawlers from one verifier to another: those with valid answers and verified operators, for at most a
// day, as many as fit.
func TestImport(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	from := New(nil)
	from.Use(Operators())
	add := func(addr, operator string, until time.Time) {
		a := netip.MustParseAddr(addr)
		from.known[a] = answer{until, Client{a, operator, "host"}}
	}
	add("203.0.113.1", "google", now.Add(time.Hour))
	add("203.0.113.2", "google", now.Add(-time.Second))
	add("203.0.113.3", "bing", now.Add(time.Hour))
	add("203.0.113.4", "", now.Add(time.Hour))
	add("2001:db8::5", "google", now.Add(1000*time.Hour))
	from.known[netip.MustParseAddr("203.0.113.6")] = answer{} // outstanding

	to := New(nil)
	to.Use([]string{"google"})
	records := slices.Collect(from.ExportAt(now))
	if len(records) != 1 || fmt.Sprint(records) != fmt.Sprint(slices.Collect(from.ExportAt(now))) {
		t.Fatalf("%d records, or another order the second time", len(records))
	}
	verified := must.Get(to.ImportAt(now, records[0]))(t)
	all := address.NewSet(verified...)
	for client, want := range map[string]bool{"203.0.113.1": true, "203.0.113.2": false, "203.0.113.3": false, "203.0.113.4": false, "2001:db8::5": true, "203.0.113.6": false} {
		if all.Contains([]byte(client)) != want {
			t.Errorf("%s is verified: %v, want %v", client, !want, want)
		}
	}
	if s := to.Stats(); s.Verified != 2 || to.known[netip.MustParseAddr("2001:db8::5")].until != now.Add(crawlerFor) {
		t.Errorf("%+v, until %v", s, to.known)
	}
	verified, _ = to.sweep(now.Add(2*time.Hour), false)
	if all := address.NewSet(verified...); all.Contains([]byte("203.0.113.1")) || !all.Contains([]byte("2001:db8::5")) {
		t.Error("an answer from another verifier does not end when it should")
	}
	if _, err := to.ImportAt(now, []byte("{")); err == nil || !strings.Contains(err.Error(), "record of crawlers") {
		t.Errorf("a wrong record: %v", err)
	}
	if all, err := New(nil).ImportAt(now, records[0]); err != nil || len(all) > 0 {
		t.Errorf("a verifier that verifies nobody: %v", err)
	}

	many := New(nil)
	many.Use(Operators())
	for i := range maxKnown + 100 {
		a := netip.AddrFrom4([4]byte{9, byte(i >> 16), byte(i >> 8), byte(i)})
		many.known[a] = answer{now.Add(time.Hour), Client{a, "google", "host"}}
	}
	for record := range many.ExportAt(now) {
		must.Get(to.ImportAt(now, record))(t)
	}
	if len(to.known) != maxKnown {
		t.Errorf("%d are kept, want %d", len(to.known), maxKnown)
	}
}
