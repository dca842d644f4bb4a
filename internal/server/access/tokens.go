package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
)

const (
	MinToken = 32  // the fewest characters of a token
	MaxToken = 512 // the most

	// MaxTokens is how many tokens a file can have: each costs every
	// authentication a little.
	MaxTokens = 256

	hashPrefix = "sha256:"
)

// An Identity is who somebody is: what a token stands for. The zero Identity is
// nobody.
type Identity struct {
	Role Role
	Name string // from the file; the name of the role when it has none
}

// Tokens is the tokens of a file. It never changes, so that it can be replaced as
// a whole while others use it. It is safe for concurrent use. The zero Tokens, and
// a nil one, have no token and know nobody. Get one with [Load], [Parse] or
// [Generate].
type Tokens struct {
	hashes []hash
	who    []Identity // of the hash in the same place
	digest [sha256.Size]byte
}

type hash = [sha256.Size]byte

// Role returns the role that token stands for, its name, and whether it stands
// for one.
//
// The time that it takes depends on the length of token and the number of tokens,
// not on which of them token resembles, nor on whether it is one: the hash of
// token is compared with all hashes, whole, whatever came of those before. And as
// it is hashes that are compared, who is close to one learns nothing about the
// token.
func (t *Tokens) Role(token string) (role Role, name string, ok bool) {
	if t == nil || len(token) > MaxToken {
		return None, "", false // both are known to who asks
	}
	var b [MaxToken]byte
	place, found := place(t.hashes, sha256.Sum256(b[:copy(b[:], token)]))
	if found == 0 {
		return None, "", false
	}
	who := t.who[place]
	return who.Role, who.Name, true
}

// place returns where in hashes h is, and 1; or 0 and 0. It has no branch that
// depends on what is compared.
func place(hashes []hash, h hash) (at, found int) {
	for i := range hashes {
		same := subtle.ConstantTimeCompare(hashes[i][:], h[:])
		at = subtle.ConstantTimeSelect(same, i, at)
		found |= same
	}
	return at, found
}

// Equal reports whether t and u are the same tokens with the same roles and names,
// in the same order: whoever was found in one is found in the other. To have no
// Tokens, nil, is not the same as to have none in them. It is not for tokens that
// somebody tries out.
func (t *Tokens) Equal(u *Tokens) bool {
	if t == u || t == nil || u == nil {
		return t == u
	}
	return slices.Equal(t.hashes, u.hashes) && slices.Equal(t.who, u.who)
}

// Digest returns a hash of the tokens with their roles and names, the same for Tokens
// that are Equal. It reveals nothing about a token.
func (t *Tokens) Digest() [sha256.Size]byte {
	if t == nil {
		return [sha256.Size]byte{}
	}
	return t.digest
}

// sum sets t.digest.
func (t *Tokens) sum() {
	h := sha256.New()
	for i := range t.hashes {
		h.Write(t.hashes[i][:])
		fmt.Fprintf(h, "%d %s\n", t.who[i].Role, t.who[i].Name)
	}
	t.digest = [sha256.Size]byte(h.Sum(nil))
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int {
	if t == nil {
		return 0
	}
	return len(t.hashes)
}

// String says how many tokens there are, and nothing of them.
func (t *Tokens) String() string { return fmt.Sprintf("%d tokens", t.Len()) }

// GoString is String, for %#v.
func (t *Tokens) GoString() string { return t.String() }

// Hash returns what can stand in a file in place of token: "sha256:" and 64
// hexadecimal digits. Whoever reads such a file has no token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}
