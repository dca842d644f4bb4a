package enforce

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/randtest"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// A model has the bans as sets, and scans all of them.
type model map[netip.Prefix]map[string]time.Time

// ends returns when each network that is banned ends.
func (m model) ends(now time.Time) map[netip.Prefix]time.Time {
	ends := make(map[netip.Prefix]time.Time)
	for network, rules := range m {
		for _, until := range rules {
			if until.After(now) && until.After(ends[network]) {
				ends[network] = until
			}
		}
	}
	return ends
}

// apply changes what a watcher has.
func apply(has map[netip.Prefix]time.Time, changes []change) {
	for _, c := range changes {
		if delete(has, c.network); !c.ended {
			has[c.network] = c.ban.Until
		}
	}
}

// After each update, watchers have the networks of the model, however rarely they look and
// in whatever pieces they take the changes.
func TestBansAgainstModel(t *testing.T) {
	rng := randtest.New(t)
	for range 30 {
		now := start
		b := newBans(1000, func() time.Time { return now })
		m := model{}
		watchers := []*watcher{b.watch(), b.watch()}
		has := []map[netip.Prefix]time.Time{{}, {}}
		for range 300 {
			step(rng, b, m, &now)
			b.expire()
			want := m.ends(now)
			if b.count() != len(want) {
				t.Fatalf("%d networks, want %d", b.count(), len(want))
			}
			for i, w := range watchers {
				if rng.IntN(10) >= 5*(i+1) {
					continue
				}
				follow(b, w, has[i], rng.IntN(4))
				if !maps.EqualFunc(has[i], want, time.Time.Equal) {
					t.Fatalf("a watcher has\n%v, want\n%v", has[i], want)
				}
				if lag, dropped := b.lag(w); lag != 0 || dropped != 0 {
					t.Fatalf("a watcher that has all lags %v and lacks %d", lag, dropped)
				}
			}
		}
	}
}

// follow has a watcher take all changes, in pieces.
func follow(b *bans, w *watcher, has map[netip.Prefix]time.Time, limit int) {
	for {
		if w.have == 0 {
			clear(has)
		}
		changes, version := b.after(w.have, limit)
		if w.have > 0 && len(changes) == 0 {
			return
		}
		apply(has, changes)
		b.reached(w, version)
	}
}

// step makes one random change of b and of the model.
func step(rng *rand.Rand, b *bans, m model, now *time.Time) {
	network := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(20))}), 32)
	rule := fmt.Sprint("r", rng.IntN(3))
	switch rng.IntN(10) {
	case 0, 1, 2, 3, 4, 5:
		until := now.Add(time.Duration(1+rng.IntN(100)) * time.Second)
		b.add(network, api.Ban{Rule: rule, Until: until})
		if m[network] == nil {
			m[network] = map[string]time.Time{}
		}
		m[network][rule] = until
	case 6, 7:
		b.remove(network, rule)
		delete(m[network], rule)
	case 8:
		*now = now.Add(time.Duration(rng.IntN(30)) * time.Second)
	case 9: // all bans again after missed changes
		delete(m, network)
		all := map[netip.Prefix][]api.Ban{}
		for network, rules := range m {
			for rule, until := range rules {
				if until.After(*now) {
					all[network] = append(all[network], api.Ban{Rule: rule, Until: until})
				}
			}
		}
		b.replace(all)
	}
}

// The networks have a bound, and a watcher that does not read for an hour learns how many ends it has missed.
func TestBansBound(t *testing.T) {
	now := start
	b := newBans(2, func() time.Time { return now })
	w := b.watch()
	network := func(i byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, i}), 32) }
	for i := range byte(3) {
		if ok := b.add(network(i), api.Ban{Until: now.Add(time.Minute)}); ok != (i < 2) {
			t.Errorf("network %d: %v", i, ok)
		}
	}
	follow(b, w, map[netip.Prefix]time.Time{}, 0)
	now = now.Add(time.Minute)
	b.expire()
	if b.add(network(3), api.Ban{Until: now.Add(time.Minute)}) {
		t.Error("a network was added, though those that ended are still kept")
	}
	now = now.Add(keepEnded)
	b.expire()
	if _, dropped := b.lag(w); dropped != 2 || len(b.networks) != 0 || b.order.Len() != 0 {
		t.Errorf("%d ends were missed, want 2; %d networks are left", dropped, len(b.networks))
	}
	if !b.add(network(3), api.Ban{Until: now.Add(time.Minute)}) {
		t.Error("no network was added, though all are deleted")
	}
}
