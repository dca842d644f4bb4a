package ratelimit

import (
	"crypto/sha256"
	"fmt"

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
	values := k.Values(string(key))
	if len(values) != len(k.Fields()) {
		return []string{string(key)}
	}
	return values
}

// isDigest reports whether key is the digest of a key of several values that is too long to be stored: see
// keytable.LongKey. Of one value, any 32 bytes may be a key.
func isDigest(k match.Key, key []byte) bool {
	return len(k.Fields()) > 1 && len(key) == sha256.Size && key[0] == 0xff
}
