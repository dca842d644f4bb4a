package ratelimit

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/match"
)

// banKey returns the key of k with these values, for a ban that is added.
func banKey(k match.Key, values []string) ([]byte, error) {
	key, err := keyvalue.Rejoin(k, nil, values...)
	if err != nil {
		return nil, err
	}
	if len(key) > ban.MaxKey {
		return nil, fmt.Errorf("key: %d bytes: must be at most %d", len(key), ban.MaxKey)
	}
	return key, nil
}

// listedDigest returns the key of a ban that is listed by the digest of a key of several
// values that is too long to be stored, and reports whether values are one.
func listedDigest(k match.Key, values []string) (key []byte, ok bool) {
	if len(values) != 1 || len(k.Fields()) == 1 || len(values[0]) != sha256.Size {
		return nil, false
	}
	return []byte(values[0]), true
}

// banValues returns the values in a key of k. The digest of a key that is too long to be
// stored is one value.
func banValues(k match.Key, key []byte) []string {
	values := keyvalue.All(k, string(key))
	if len(values) != len(k.Fields()) {
		return []string{string(key)}
	}
	return values
}

// listedKey returns the named rule and its key with these values, which may be as a ban is
// listed.
func (l *Limiter) listedKey(rule string, values []string) (r *Rule, key []byte, err error) {
	if r, err = l.Set().Named(rule); err != nil {
		return nil, nil, err
	}
	if key, digest := listedDigest(r.Key, values); digest {
		return r, key, nil
	}
	key, err = keyvalue.Rejoin(r.Key, nil, values...)
	return r, key, err
}

// checkBan validates b at now, and returns its key and whether its client is on the allow
// list: as it is given, or folded, since an address of a prefix may be on the list by
// itself. It sets the fields that may be left out, and the values of the key as they are
// counted.
func (l *Limiter) checkBan(b *BanRecord, now int64) (key []byte, allowed bool, err error) {
	b.Source = cmp.Or(b.Source, ban.SourceManual)
	if b.Since.IsZero() {
		b.Since = time.Unix(0, now)
	}
	if err := b.validate(); err != nil {
		return nil, false, err
	}
	r, err := l.Set().Named(b.Rule)
	if err != nil {
		return nil, false, err
	}
	if latest := time.Unix(0, now).Add(limit.MaxSpan); b.Until.After(latest) {
		return nil, false, fmt.Errorf("until: %s: must be at most %v from now, %s", formatTime(b.Until), limit.MaxSpan, formatTime(latest))
	}
	if key, err = banKey(r.Key, b.Key); err != nil {
		return nil, false, err
	}
	if b.Source != ban.SourceRule { // an event had that of a rule
		b.Key = slices.Clone(b.Key)
		if err := checkBanClient(r.Key, b.Key, l.memory != nil); err != nil {
			return nil, false, err
		}
		if key, err = banKey(r.Key, b.Key); err != nil {
			return nil, false, err
		}
	}
	allowed = l.allows(b)
	b.Key = banValues(r.Key, key)
	return key, allowed || l.allows(b), nil
}

// A ban by hand may be of a network, under a rule that counts by client alone. It is an
// entry of the ban table like any other, whose key is the network. So that events find it,
// the store knows which prefix lengths such bans have had: while there are any, an event
// is also looked up by the network of each length that its client is in.
//
// An event, too, may name its client "192.0.2.0/24", which is not an address: a rule that bans
// it must not ban the network. So networks have numbers of their own in the ban table.

// ofNetworks is set in the number of a rule for its bans of networks.
const ofNetworks = 1 << 31

// networkLengths is the prefix lengths of banned networks, those of IPv4 first. It is
// immutable.
type networkLengths [2][]int

// The shortest prefixes that can be banned: a typing error must not ban everybody.
const (
	minNetwork4 = 8
	minNetwork6 = 16
)

// byClient reports whether k is the client and nothing else, folded.
func byClient(k match.Key) bool {
	return keyvalue.ClientIndex(k) == 0 && len(k.Fields()) == 1 && len(keyvalue.Fields(k)) == 1 && !k.Fold().Off
}

// checkBanClient returns an error if the client in a key of k is a network that no event
// is counted by, unless networks can be banned under k. It then makes the network what it
// is listed as. There are as many values as k has fields.
func checkBanClient(k match.Key, values []string, memory bool) error {
	i, fold := keyvalue.ClientIndex(k), k.Fold()
	if i < 0 || fold.Off {
		return nil
	}
	client := string(keyvalue.Client(k.Fields()[i], []byte(values[i])))
	p, err := netip.ParsePrefix(client)
	if err != nil {
		return nil
	}
	folded := string(keyvalue.AppendClient(nil, fold, []byte(p.Addr().String())))
	if folded == client {
		return nil
	}
	least, most := minNetwork4, fold.IPv4
	if p.Addr().Is6() {
		least, most = minNetwork6, fold.IPv6
	}
	switch {
	case !memory || !byClient(k):
		return fmt.Errorf("client: %q: networks cannot be banned under a rule that counts by more than the client, or in a shared store: must be an address; %s bans %s", client, p.Addr(), folded)
	case p.Bits() >= most || p.Addr().Is4In6():
		return fmt.Errorf("client: %q: not a network of several clients: must be an address, or shorter than /%d; %s bans %s", client, most, p.Addr(), folded)
	case p.Bits() < least:
		return fmt.Errorf("client: %q: too many clients: must be /%d or longer", client, least)
	}
	values[i] = p.Masked().String()
	return nil
}

// networkOf returns the address or network in key, if mr counts by client alone.
func (mr *memoryRule) networkOf(key []byte) (netip.Prefix, bool) {
	if !mr.byClient {
		return netip.Prefix{}, false
	}
	p, err := address.ParsePrefix(unsafe.String(unsafe.SliceData(key), len(key))) // only read
	return p, err == nil
}

// family returns the place of a's lengths in networkLengths.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// banID returns the number in the ban table for a ban of that source, and notes its network if
// it is of one: a rule bans clients only.
func (m *memory) banID(mr *memoryRule, key []byte, source string) uint32 {
	if source == ban.SourceRule {
		return mr.id
	}
	p, ok := mr.networkOf(key)
	if !ok || p.Bits() >= mr.clientBits(p.Addr()) {
		return mr.id
	}
	m.noteNetwork(p)
	return mr.id | ofNetworks
}

// clientBits returns the length of the prefix that addresses like a are folded to.
func (mr *memoryRule) clientBits(a netip.Addr) int {
	fold := mr.Key.Fold()
	return [2]int{fold.IPv4, fold.IPv6}[family(a)]
}

// noteNetwork notes the length of a network that is to be banned.
func (m *memory) noteNetwork(p netip.Prefix) {
	for {
		old := m.networks.Load()
		lengths := new(networkLengths)
		if old != nil {
			*lengths = *old
		}
		of := &lengths[family(p.Addr())]
		if slices.Contains(*of, p.Bits()) {
			return
		}
		*of = append(slices.Clone(*of), p.Bits())
		if m.networks.CompareAndSwap(old, lengths) {
			return
		}
	}
}

// networksAround returns the address in key and the lengths of the networks around it that
// may be banned under mr.
func (m *memory) networksAround(mr *memoryRule, key []byte) (netip.Addr, []int) {
	lengths := m.networks.Load()
	if lengths == nil {
		return netip.Addr{}, nil
	}
	p, ok := mr.networkOf(key)
	if !ok || p.Bits() != mr.clientBits(p.Addr()) { // not an address, but text that reads as a network
		return netip.Addr{}, nil
	}
	return p.Addr(), lengths[family(p.Addr())]
}

// networkUntil returns when the ban of a network around key ends that holds at now and
// ends last.
func (m *memory) networkUntil(mr *memoryRule, key []byte, now int64) (until int64, ok bool) {
	if m.networks.Load() == nil {
		return 0, false
	}
	_, until, ok = m.bannedNetwork(mr, key, now)
	return until, ok
}

// bannedNetwork returns the network around key whose ban holds at now and ends last, and when that is.
func (m *memory) bannedNetwork(mr *memoryRule, key []byte, now int64) (network netip.Prefix, until int64, ok bool) {
	var text [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]byte
	addr, lengths := m.networksAround(mr, key)
	for _, bits := range lengths {
		p, _ := addr.Prefix(bits) // lengths are of the family of addr
		key := p.AppendTo(text[:0])
		if end, holds := m.bans.Until(mr.id|ofNetworks, maphash.Bytes(m.seed, key), key, now); holds && (!ok || end > until) {
			network, until, ok = p, end, true
		}
	}
	return network, until, ok
}
