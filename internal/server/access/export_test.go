package access

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Peers returns how many peers a limiter takes memory for.
func (l *ConnLimiter) Peers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.peers)
}

// All returns the identities of the tokens, in the order of the file.
func (t *Tokens) All() []Identity {
	if t == nil {
		return nil
	}
	return slices.Clone(t.who)
}

// Hash returns what can replace token in a file.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}
