package keytable

import (
	"crypto/hmac"
	"crypto/sha256"
)

// LongKey returns what a table keeps of a key that is too long to be kept: its
// HMAC-SHA-256 of 32 bytes. Without the secret nobody can build a key that is taken
// for another, and unlike a maphash it is the same in another process.
func LongKey(secret *[32]byte, key []byte) []byte {
	h := hmac.New(sha256.New, secret[:])
	h.Write(key)
	return h.Sum(nil)
}
