package ratelimit

import "github.com/lately-go/lately/internal/keytable"

// Memory keeps keys of up to a kibibyte as they are. Of a longer one, which is
// rare and would cost a client nothing to send, it keeps an HMAC-SHA-256 with a
// secret of its own: nobody can build a key that is taken for it.

const (
	// maxKey is the longest key that Memory takes, in bytes.
	maxKey = 1<<20 - 1

	// maxStored is the longest that it keeps as it is.
	maxStored = keytable.MaxKey
)

// stored returns what stands for key in the tables of m.
func (m *memory) stored(key []byte) []byte {
	if len(key) <= maxStored {
		return key
	}
	return keytable.LongKey(m.secret.Load(), key)
}
