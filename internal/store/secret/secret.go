// Package secret has the secret of a server, from which it derives a key for each use: to seal ids
// that it gives to clients, and to digest the values of fields that nobody may read. Servers that share
// a store have the same secret, and a server keeps its own over restarts.
package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
)

// Size is the number of bytes of a secret and of a key.
const Size = 32

// FieldLabel is the label of the key of the digests of hashed fields.
const FieldLabel = "field"

// A Value is the bytes of a secret.
type Value [Size]byte

// A Key is derived from a secret for one use.
type Key [Size]byte

// A Secret derives keys. Its zero value is not usable; call [New]. It is safe for concurrent use.
type Secret struct{ current atomic.Pointer[derived] }

// derived is a value and the keys that were derived from it.
type derived struct {
	value Value
	keys  sync.Map // label to *Key
}

// New returns a secret with a random value.
func New() *Secret {
	s := new(Secret)
	var v Value
	_, _ = rand.Read(v[:]) // it never fails
	s.Set(v)
	return s
}

// Set replaces the value, and so all keys, unless s has that value.
func (s *Secret) Set(v Value) {
	if now := s.current.Load(); now == nil || subtle.ConstantTimeCompare(now.value[:], v[:]) == 0 {
		s.current.Store(&derived{value: v})
	}
}

// Value returns the value, to be kept or shared.
func (s *Secret) Value() Value { return s.current.Load().value }

// Key returns the key for one use: the HMAC-SHA256 of label under the secret. Each label has its
// own key, from which neither other keys nor the secret can be computed. It is the same pointer
// until Set replaces the value, so that callers can keep what they make of it. Labels are few
// constants: each is remembered.
func (s *Secret) Key(label string) *Key {
	now := s.current.Load()
	if k, ok := now.keys.Load(label); ok {
		return k.(*Key)
	}
	mac := hmac.New(sha256.New, now.value[:])
	mac.Write([]byte(label))
	k, _ := now.keys.LoadOrStore(label, (*Key)(mac.Sum(nil)))
	return k.(*Key)
}

// checkSize is how many bytes of the checksum a text has.
const checkSize = 8

// Text returns v for a file or a store: hexadecimal digits that end with a checksum.
func (v *Value) Text() string {
	sum := sha256.Sum256(v[:])
	return hex.EncodeToString(append(v[:], sum[:checkSize]...))
}

// ErrDamaged is the error of [Parse].
var ErrDamaged = errors.New("not a secret: must be the digits that were written")

// Parse returns the value of a text, which may end with a line feed.
func Parse(text string) (v Value, err error) {
	b, err := hex.DecodeString(strings.TrimSuffix(text, "\n"))
	if err != nil || len(b) != Size+checkSize {
		return v, ErrDamaged
	}
	found := Value(b[:Size])
	if sum := sha256.Sum256(found[:]); subtle.ConstantTimeCompare(sum[:checkSize], b[Size:]) == 0 {
		return v, ErrDamaged
	}
	return found, nil
}
