package ratelimit

import (
	"crypto/sha256"
	"fmt"

	"github.com/lately-go/lately/match"
)

// banKey is valuesKey for a key that is to be banned, or no longer.
func banKey(k match.Key, values []string) ([]byte, error) {
	key, err := valuesKey(k, values)
	if err != nil {
		return nil, err
	}
	if len(key) > maxBanKey {
		return nil, fmt.Errorf("key has %d bytes; allowed is at most %d", len(key), maxBanKey)
	}
	return key, nil
}

// valuesKey returns the key under which k counts the values that a BanRecord has.
// A client is folded as k folds it, so that an address of a customer with a /64
// bans what is counted for it; a client that is folded already stays as it is.
// Other values are taken as they are: a path is one that was cleaned.
func valuesKey(k match.Key, values []string) ([]byte, error) {
	return k.Rejoin(nil, values...)
}

// listedDigest returns the key of a ban that is listed with the digest of a key of
// several values which is too long to be kept, and reports whether values are one.
func listedDigest(k match.Key, values []string) (key []byte, ok bool) {
	if len(values) != 1 || len(k.Fields()) == 1 || len(values[0]) != sha256.Size {
		return nil, false
	}
	return []byte(values[0]), true
}

// banValues returns the values in a key of k. What is no key of k, but stands for
// one that is too long to be kept, is one value.
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
