package ratelimit

import (
	"crypto/sha256"
	"fmt"
	"net/netip"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/match"
)

// banKey returns the key of k with these values, for a ban that is added.
func banKey(k match.Key, values []string) ([]byte, error) {
	key, err := k.Rejoin(nil, values...)
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
	var values []string
	for v := range k.Parts(key) {
		values = append(values, string(v))
	}
	if len(values) != len(k.Fields()) {
		return []string{string(key)}
	}
	return values
}

// checkBanClient returns an error if the client in a key of k is a network to which no
// client is folded: no event has it, so a ban of it would do nothing. There are as many
// values as k has fields.
func checkBanClient(k match.Key, values []string) error {
	i := k.ClientField()
	fold := k.Fold()
	if i < 0 || fold.Off {
		return nil
	}
	client := string(k.ClientOf(i, []byte(values[i])))
	p, err := netip.ParsePrefix(client)
	if err != nil {
		return nil
	}
	folded := string(fold.Append(nil, []byte(p.Addr().String())))
	if folded == client {
		return nil
	}
	return fmt.Errorf("client: %q: networks cannot be banned: must be an address; %s bans %s", client, p.Addr(), folded)
}
