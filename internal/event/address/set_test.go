package address

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestSet(t *testing.T) {
	s := NewSet(append(prefixes("192.0.2.0/24", "fe80::/10", "::ffff:198.51.100.0/120", "203.0.113.9/24"), netip.Prefix{})...)
	for client, want := range map[string]bool{
		"192.0.2.77": true, "::ffff:192.0.2.77": true, "fe80::1%eth0": true, "198.51.100.7": true, "203.0.113.255": true, "[192.0.2.0]:80": true,
		"192.0.3.1": false, "192.0.1.255": false, "::192.0.2.77": false, "example.com": false, "192.0.2.0/24": false, "": false,
	} {
		if got := s.Contains([]byte(client)); got != want {
			t.Errorf("%q: %t; want %t", client, got, want)
		}
	}
	none, v4, v6 := Set{}, NewSet(prefixes("0.0.0.0/0")...), NewSet(prefixes("::/0")...)
	for _, client := range []string{"0.0.0.0", "255.255.255.255", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		c := []byte(client)
		is4 := netip.MustParseAddr(client).Is4()
		if none.Contains(c) || v4.Contains(c) != is4 || v6.Contains(c) == is4 {
			t.Errorf("%s: in no prefix %t, in 0.0.0.0/0 %t, in ::/0 %t", client, none.Contains(c), v4.Contains(c), v6.Contains(c))
		}
	}
	if !none.IsEmpty() || v4.IsEmpty() || v6.IsEmpty() || none.Overlaps(netip.Prefix{}) || v4.ContainsPrefix(netip.Prefix{}) {
		t.Error("IsEmpty, or an invalid prefix")
	}
}

// A prefix is contained if others cover it together.
func TestSetMerge(t *testing.T) {
	s := NewSet(prefixes("10.128.0.0/9", "10.0.0.0/9", "10.1.0.0/16", "2001:db8::/33", "2001:db8:8000::/33", "255.0.0.0/8")...)
	if len(s.v4) != 2 || len(s.v6) != 1 {
		t.Errorf("%d and %d spans, want 2 and 1", len(s.v4), len(s.v6))
	}
	for _, p := range prefixes("10.0.0.0/8", "2001:db8::/32", "::ffff:10.0.0.0/104") {
		if !s.ContainsPrefix(p) {
			t.Errorf("%v is not contained", p)
		}
	}
	if s.ContainsPrefix(netip.MustParsePrefix("10.0.0.0/7")) || !s.Overlaps(netip.MustParsePrefix("10.0.0.0/7")) || s.Overlaps(netip.MustParsePrefix("11.0.0.0/8")) {
		t.Error("10.0.0.0/7 must overlap and not be contained, and 11.0.0.0/8 must not overlap")
	}
}

// randomPrefix returns a prefix near the others that it returns, so that many overlap.
func randomPrefix(rnd *rand.Rand) netip.Prefix {
	if rnd.IntN(2) == 0 {
		b := [4]byte{10, 0, byte(rnd.IntN(2)), byte(rnd.Uint32())}
		return netip.PrefixFrom(netip.AddrFrom4(b), 20+rnd.IntN(13))
	}
	b := [16]byte{0x20, 0x01, 7: byte(rnd.IntN(2)), 8: byte(rnd.IntN(2)), 15: byte(rnd.Uint32())}
	return netip.PrefixFrom(netip.AddrFrom16(b), []int{48, 63, 64, 65, 127, 128, 120 + rnd.IntN(9)}[rnd.IntN(7)])
}

// TestSetModel compares with the prefixes one by one.
func TestSetModel(t *testing.T) {
	rnd := randtest.New(t)
	for range 300 {
		var list []netip.Prefix
		for range rnd.IntN(20) {
			list = append(list, randomPrefix(rnd))
		}
		s := NewSet(list...)
		for range 100 {
			p := randomPrefix(rnd)
			a := p.Addr()
			if got, want := s.Contains([]byte(a.String())), slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) }); got != want {
				t.Fatalf("%v in %v: %t, want %t", a, list, got, want)
			}
			if got, want := s.Overlaps(p), slices.ContainsFunc(list, p.Overlaps); got != want {
				t.Fatalf("%v overlaps %v: %t, want %t", p, list, got, want)
			}
			if got, one := s.ContainsPrefix(p), slices.ContainsFunc(list, func(l netip.Prefix) bool { return l.Bits() <= p.Bits() && l.Contains(a) }); got != one && (one || !coveredTogether(list, p)) {
				t.Fatalf("%v contained in %v: %t", p, list, got)
			}
		}
	}
}

// coveredTogether reports whether list covers p, half by half.
func coveredTogether(list []netip.Prefix, p netip.Prefix) bool {
	p = p.Masked()
	if slices.ContainsFunc(list, func(l netip.Prefix) bool { return l.Bits() <= p.Bits() && l.Contains(p.Addr()) }) {
		return true
	}
	if p.IsSingleIP() || !slices.ContainsFunc(list, p.Overlaps) {
		return false
	}
	upper := p.Addr().AsSlice()
	upper[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	high, _ := netip.AddrFromSlice(upper)
	return coveredTogether(list, netip.PrefixFrom(p.Addr(), p.Bits()+1)) && coveredTogether(list, netip.PrefixFrom(high, p.Bits()+1))
}

// apart returns n prefixes of IPv4 that do not adjoin.
func apart(n int) []netip.Prefix {
	list := make([]netip.Prefix, n)
	for i := range list {
		list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(i)<<9))), 24)
	}
	return list
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{1, 10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := apart(n)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s := NewSet(list...)
			runtime.GC()
			runtime.ReadMemStats(&after)
			var clients [1024][]byte
			for i := range clients {
				a := list[rand.IntN(n)].Addr().As4()
				a[2] |= byte(i & 1) // half of them are not in a prefix
				a[3] = byte(i)
				clients[i] = netip.AddrFrom4(a).AppendTo(nil)
			}
			i := 0
			for b.Loop() {
				s.Contains(clients[i%len(clients)])
				i++
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc), "heap-bytes")
			runtime.KeepAlive(list)
		})
	}
}
