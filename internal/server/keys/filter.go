package keys

import (
	"net/netip"
	"slices"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/server/apierror"
)

// A Filter selects keys. A key is selected if it satisfies every field that is set;
// the zero Filter selects all.
type Filter struct {
	// Pattern is a glob as [Glob] takes it. It must match one value of the key, or,
	// for a key of several values, all of them joined by Separator.
	Pattern string

	// Network must contain one value of the key, which is an address or a network.
	Network netip.Prefix
}

// ParseFilter returns the filter of these texts; empty texts are not set. Its error is an
// [*apierror.Error].
func ParseFilter(pattern, network string) (f Filter, err error) {
	if len(pattern) > Max {
		return f, apierror.New(api.BadArg, "pattern: too long: %d bytes (max %d)", len(pattern), Max)
	}
	f.Pattern = pattern
	if network != "" {
		if f.Network, err = address.ParsePrefix(network); err != nil {
			return f, apierror.New(api.BadArg, "network: %.64q: must be an address or a network such as 192.0.2.0/24", network)
		}
	}
	return f, nil
}

// Selects reports whether f selects the key of these values.
func (f *Filter) Selects(key []string) bool {
	return (f.Pattern == "" || f.matches(key)) && (!f.Network.IsValid() || slices.ContainsFunc(key, f.contains))
}

func (f *Filter) matches(key []string) bool {
	return slices.ContainsFunc(key, func(v string) bool { return Glob(f.Pattern, v) }) ||
		len(key) > 1 && Glob(f.Pattern, Text(key))
}

func (f *Filter) contains(value string) bool {
	p, err := address.ParsePrefix(value)
	return err == nil && p.Bits() >= f.Network.Bits() && f.Network.Contains(p.Addr())
}

// Glob reports whether name matches a pattern of Redis: ? is any byte, * any bytes, [abc],
// [^abc] and [a-c] a byte of a set, and a backslash quotes the next byte. It backtracks to
// the last star only, so the cost is at most the product of both lengths (R. Cox, "Glob
// Matching Can Be Simple And Fast Too").
func Glob[T string | []byte](pattern string, name T) bool {
	p, n := 0, 0
	star, from := -1, 0 // behind the last star, and where it ends for now
	for p < len(pattern) || n < len(name) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				p++
				star, from = p, n
				continue
			}
			if n < len(name) {
				if ok, next := globByte(pattern, p, name[n]); ok {
					p, n = next, n+1
					continue
				}
			}
		}
		if star < 0 || from >= len(name) {
			return false
		}
		from++
		p, n = star, from
	}
	return true
}

// globByte reports whether the element at pattern[p], no star, matches b, and where it ends.
func globByte(pattern string, p int, b byte) (ok bool, next int) {
	switch c := pattern[p]; {
	case c == '?':
		return true, p + 1
	case c == '[':
		return globSet(pattern, p+1, b)
	case c == '\\' && p+1 < len(pattern):
		return pattern[p+1] == b, p + 2
	default:
		return c == b, p + 1
	}
}

// globSet is globByte for a set whose first byte is at p. A set without an end continues to
// the end of the pattern.
func globSet(pattern string, p int, b byte) (ok bool, next int) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for p < len(pattern) && pattern[p] != ']' {
		lo := pattern[p]
		if lo == '\\' && p+1 < len(pattern) {
			p++
			lo = pattern[p]
			ok = ok || lo == b
			p++
			continue
		}
		hi := lo
		if p+2 < len(pattern) && pattern[p+1] == '-' {
			hi = pattern[p+2]
			p += 2
		}
		ok = ok || min(lo, hi) <= b && b <= max(lo, hi)
		p++
	}
	return ok != not, min(p+1, len(pattern))
}
