package match

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// Prefixes is a set of addresses, given as prefixes, such as an allow list. An IPv4-mapped IPv6
// address or prefix is the IPv4 one; an IPv6 prefix contains no IPv4 address.
//
// A lookup is a binary search that does not allocate. A prefix takes 32 bytes; prefixes that
// overlap or adjoin share them. Prefixes is immutable and safe for concurrent use. The zero value
// is empty.
type Prefixes struct{ v4, v6 []span }

// A span is all addresses from one to another.
type span struct{ from, to number }

// A number is an address as a number of 128 bits.
type number struct{ hi, lo uint64 }

func (n number) less(m number) bool { return n.hi < m.hi || n.hi == m.hi && n.lo < m.lo }

// next returns n + 1, which is 0 after the last number.
func (n number) next() number {
	n.lo++
	if n.lo == 0 {
		n.hi++
	}
	return n
}

// numberOf returns the number of an unmapped address.
func numberOf(a netip.Addr) number {
	if a.Is4() {
		b := a.As4()
		return number{lo: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// spanOf returns the addresses of an unmapped prefix.
func spanOf(p netip.Prefix) span {
	from := numberOf(p.Masked().Addr())
	free := p.Addr().BitLen() - p.Bits() // bits that differ within p
	const one = uint64(1)                // shifted by 64 and more, it is 0
	mask := number{one<<max(free-64, 0) - 1, one<<free - 1}
	return span{from, number{from.hi | mask.hi, from.lo | mask.lo}}
}

// NewPrefixes returns the set of the addresses in prefixes. It skips invalid prefixes.
func NewPrefixes(prefixes ...netip.Prefix) Prefixes {
	var ps Prefixes
	for _, p := range prefixes {
		switch p = unmap(p); {
		case !p.IsValid():
		case p.Addr().Is4():
			ps.v4 = append(ps.v4, spanOf(p))
		default:
			ps.v6 = append(ps.v6, spanOf(p))
		}
	}
	ps.v4, ps.v6 = merge(ps.v4), merge(ps.v6)
	return ps
}

// merge sorts spans, and makes one of those that overlap or adjoin.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from.hi, b.from.hi), cmp.Compare(a.from.lo, b.from.lo))
	})
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 {
			last := &merged[n-1]
			if !last.to.less(s.from) || s.from == last.to.next() {
				if last.to.less(s.to) {
					last.to = s.to
				}
				continue
			}
		}
		merged = append(merged, s)
	}
	return slices.Clip(merged)
}

// IsEmpty reports whether ps contains no address.
func (ps *Prefixes) IsEmpty() bool { return len(ps.v4)+len(ps.v6) == 0 }

// Contains reports whether client is an address in ps, in a form that [ParseAddr] takes.
func (ps *Prefixes) Contains(client []byte) bool {
	if ps.IsEmpty() {
		return false // without parsing
	}
	a, ok := parseAddr(client)
	if !ok {
		return false
	}
	all, n := ps.v6, numberOf(a)
	if a.Is4() {
		all = ps.v4
	}
	i := endsFrom(all, n)
	return i < len(all) && !n.less(all[i].from)
}

// ContainsPrefix reports whether ps contains every address of p.
func (ps *Prefixes) ContainsPrefix(p netip.Prefix) bool {
	all, s, ok := ps.of(p)
	i := endsFrom(all, s.from)
	return ok && i < len(all) && !s.from.less(all[i].from) && !all[i].to.less(s.to)
}

// Overlaps reports whether ps contains an address of p.
func (ps *Prefixes) Overlaps(p netip.Prefix) bool {
	all, s, ok := ps.of(p)
	i := endsFrom(all, s.from)
	return ok && i < len(all) && !s.to.less(all[i].from)
}

// of returns the spans of p's family, and that of p.
func (ps *Prefixes) of(p netip.Prefix) (all []span, s span, ok bool) {
	if p = unmap(p); !p.IsValid() {
		return nil, s, false
	}
	if p.Addr().Is4() {
		return ps.v4, spanOf(p), true
	}
	return ps.v6, spanOf(p), true
}

// endsFrom returns the first of the sorted spans that ends at n or later.
func endsFrom(spans []span, n number) int {
	lo, hi := 0, len(spans)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); spans[mid].to.less(n) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
