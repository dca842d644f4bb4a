package address

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"unsafe"
)

// A Set is a set of addresses, given as prefixes, such as an allow list. An IPv4-mapped IPv6
// address or prefix is the IPv4 one; an IPv6 prefix contains no IPv4 address.
//
// A lookup is a binary search that does not allocate. A prefix takes 32 bytes; prefixes that
// overlap or adjoin share them. A Set is immutable and safe for concurrent use. The zero value
// is empty.
type Set struct{ v4, v6 []span }

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

// NewSet returns the set of the addresses in prefixes. It skips invalid prefixes.
func NewSet(prefixes ...netip.Prefix) Set {
	var s Set
	for _, p := range prefixes {
		switch p = unmap(p); {
		case !p.IsValid():
		case p.Addr().Is4():
			s.v4 = append(s.v4, spanOf(p))
		default:
			s.v6 = append(s.v6, spanOf(p))
		}
	}
	s.v4, s.v6 = merge(s.v4), merge(s.v6)
	return s
}

// merge sorts spans, and joins spans that overlap or adjoin.
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

// IsEmpty reports whether s contains no address.
func (s *Set) IsEmpty() bool { return len(s.v4)+len(s.v6) == 0 }

// Contains reports whether client is an address in s, in a form that [Parse]
// accepts.
func (s *Set) Contains(client []byte) bool {
	if s.IsEmpty() {
		return false // without parsing
	}
	a, ok := Parse(unsafe.String(unsafe.SliceData(client), len(client))) // only read
	if !ok {
		return false
	}
	all, n := s.v6, numberOf(a)
	if a.Is4() {
		all = s.v4
	}
	i := endsFrom(all, n)
	return i < len(all) && !n.less(all[i].from)
}

// ContainsPrefix reports whether s contains every address of p.
func (s *Set) ContainsPrefix(p netip.Prefix) bool {
	all, x, ok := s.of(p)
	i := endsFrom(all, x.from)
	return ok && i < len(all) && !x.from.less(all[i].from) && !all[i].to.less(x.to)
}

// Overlaps reports whether s contains any address of p.
func (s *Set) Overlaps(p netip.Prefix) bool {
	all, x, ok := s.of(p)
	i := endsFrom(all, x.from)
	return ok && i < len(all) && !x.to.less(all[i].from)
}

// of returns the spans of p's family, and that of p.
func (s *Set) of(p netip.Prefix) (all []span, x span, ok bool) {
	if p = unmap(p); !p.IsValid() {
		return nil, x, false
	}
	if p.Addr().Is4() {
		return s.v4, spanOf(p), true
	}
	return s.v6, spanOf(p), true
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
