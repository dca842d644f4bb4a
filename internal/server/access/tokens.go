package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"fmt"
)

const (
	MinToken = 32  // the fewest characters of a token
	MaxToken = 512 // the most

	// MaxTokens is how many tokens a file can have: each authentication compares
	// all of them.
	MaxTokens = 256

	hashPrefix = "sha256:"
	certPrefix = "cert:"
)

// An Identity is what a token or a certificate stands for. The zero Identity is an unknown client.
type Identity struct {
	Role Role
	Name string // from the file, or the name of the role
}

// Tokens is the tokens and the names of certificates of a file. It never changes, so it is safe for concurrent use,
// and is replaced as a whole. The zero Tokens and nil contain no token. Get one with
// [Load], [Parse] or [Generate].
type Tokens struct {
	hashes []hash
	who    []Identity          // of the hash in the same place
	certs  map[string]Identity // by the name of the certificate
	digest [sha256.Size]byte
}

type hash = [sha256.Size]byte

// Role returns the role and the name of token, and whether t contains it.
//
// Its time depends on the length of token and the number of tokens, not on whether
// token resembles or equals one of them: its hash is compared with all hashes. As
// hashes are compared, times say nothing about a token.
func (t *Tokens) Role(token string) (role Role, name string, ok bool) {
	if t == nil || len(token) > MaxToken {
		return None, "", false // the caller knows both
	}
	var b [MaxToken]byte
	at, found := place(t.hashes, sha256.Sum256(b[:copy(b[:], token)]))
	if found == 0 {
		return None, "", false
	}
	return t.who[at].Role, t.who[at].Name, true
}

// place returns the index of h in hashes, and 1; or 0 and 0. It has no branch that
// depends on the compared bytes.
func place(hashes []hash, h hash) (at, found int) {
	for i := range hashes {
		same := subtle.ConstantTimeCompare(hashes[i][:], h[:])
		at = subtle.ConstantTimeSelect(same, i, at)
		found |= same
	}
	return at, found
}

// Certificate returns the identity of the first of these names of a certificate that t contains.
// The caller has verified the certificate. See [CertificateNames].
func (t *Tokens) Certificate(names []string) (who Identity, ok bool) {
	if t == nil {
		return Identity{}, false
	}
	for _, name := range names {
		if who, ok := t.certs[name]; ok {
			return who, true
		}
	}
	return Identity{}, false
}

// CertificateNames returns the names by which a certificate can have a role: its URIs and then its DNS
// names, or, of one that has neither, the common name of its subject.
func CertificateNames(cert *x509.Certificate) (names []string) {
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	names = append(names, cert.DNSNames...)
	if names == nil && cert.Subject.CommonName != "" {
		names = []string{cert.Subject.CommonName}
	}
	return names
}

// With returns the tokens of t for the clients of a file of CA certificates: they are not Equal to those for
// another file, so that a client whose CA is gone does not stay connected.
func (t *Tokens) With(authorities []byte) *Tokens {
	u := *t
	u.digest = sha256.Sum256(append(t.digest[:], authorities...))
	return &u
}

// Certificates returns the number of names of certificates.
func (t *Tokens) Certificates() int {
	if t == nil {
		return 0
	}
	return len(t.certs)
}

// Equal reports whether t and u contain the same tokens and certificates with the same roles and names,
// in the same order, for the same CAs. Nil equals nil only.
func (t *Tokens) Equal(u *Tokens) bool {
	if t == u || t == nil || u == nil {
		return t == u
	}
	return t.digest == u.digest
}

// Len returns the number of tokens.
func (t *Tokens) Len() int {
	if t == nil {
		return 0
	}
	return len(t.hashes)
}

// String returns how many tokens there are, without their hashes.
func (t *Tokens) String() string { return fmt.Sprintf("%d tokens", t.Len()) }

// GoString is String, for %#v.
func (t *Tokens) GoString() string { return t.String() }

// A Role is what a client may do. Each role includes those before it.
type Role uint8

// The roles, from least to most.
const (
	None  Role = iota // an unknown client
	Read              // read counts, rules, bans and statistics
	Check             // ask for decisions and add events, as a service does
	Admin             // ban, unban, reset, reload
)

var roleNames = [...]string{"none", "read", "check", "admin"}

// String returns the name of r, as in token files.
func (r Role) String() string {
	if int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", r)
	}
	return roleNames[r]
}

// May reports whether r includes the role need. An invalid role includes nothing.
func (r Role) May(need Role) bool { return need <= r && r <= Admin }

// RoleNamed returns the role of that name: read, check or admin.
func RoleNamed(name string) (Role, error) {
	for r := Read; r <= Admin; r++ {
		if name == roleNames[r] {
			return r, nil
		}
	}
	const must = "must be read, check or admin"
	if len(name) > maxShown {
		return None, fmt.Errorf("role: a word of %d characters: %s", len(name), must)
	}
	return None, fmt.Errorf("role: %q: %s", name, must)
}

// maxShown is the longest word that an error shows: a longer one in the place of a role
// may be a token.
const maxShown = 12
