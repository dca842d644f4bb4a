package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/lately-go/lately/internal/file/fileperm"
)

const (
	maxFile        = 1 << 20 // bytes
	maxCertificate = 256     // characters of the name of a certificate
)

// Load reads the tokens of a file; see [Parse]. It must be a regular file that only
// its owner and groups of this process can read or write, as a Secret of Kubernetes
// is. If not, the error says which command to run.
func Load(path string) (*Tokens, error) {
	f, info, err := fileperm.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close() // read only
	if fileperm.Strangers(info) != 0 {
		return nil, fmt.Errorf("tokens: others can read %s (mode %04o), so its tokens may be known; replace them if they are, and run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return Parse(f, path)
}

// Parse reads tokens from lines of the form
//
//	role token [name]
//
//	role cert:certificate [name]
//
// with role read, check or admin, token 32 to 512 visible ASCII characters or
// "sha256:" and the hash of a token in 64 hexadecimal digits, and name up to 64
// letters, digits and the characters . _ - @, which logs show. certificate is a name of
// a client's certificate, see [CertificateNames]. A word that begins with # ends its line. Errors have the form file:line:column and never show a token. There
// must be at least one token or certificate, at most MaxTokens tokens, and no duplicates.
func Parse(r io.Reader, file string) (*Tokens, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("tokens: %s: %w", file, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("tokens: %s: too long (max %d bytes)", file, maxFile)
	}
	p := parser{Tokens: &Tokens{certs: map[string]Identity{}}, lines: map[hash]int{}, digest: sha256.New()}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if w := words(line); len(w) > 0 {
			if column, err := p.add(n, w); err != nil {
				return nil, fmt.Errorf("tokens: %s:%d:%d: %w", file, n, column, err)
			}
		}
	}
	if p.Len() == 0 && p.Certificates() == 0 {
		return nil, fmt.Errorf("tokens: %s has no token; want lines of the form: role token [name]", file)
	}
	p.Tokens.digest = [sha256.Size]byte(p.digest.Sum(nil))
	return p.Tokens, nil
}

// A parser is Tokens while their file is read.
type parser struct {
	*Tokens
	lines  map[hash]int // in which each is
	digest stdhash.Hash
}

// add adds the token or the certificate of a line, which has these words. column is the place of an error.
func (p *parser) add(line int, w []word) (column int, err error) {
	h, who, column, err := parseLine(w)
	if err != nil {
		return column, err
	}
	cert, isCert := strings.CutPrefix(w[1].text, certPrefix)
	switch first, duplicate := p.lines[h]; {
	case duplicate && isCert:
		return column, fmt.Errorf("this certificate is that of line %d; each has its own", first)
	case duplicate:
		return column, fmt.Errorf("this token is that of line %d; each has its own", first)
	case len(p.hashes) == MaxTokens:
		return column, fmt.Errorf("there are more than %d tokens", MaxTokens)
	case isCert:
		p.certs[cert] = who
	default:
		p.hashes, p.who = append(p.hashes, h), append(p.who, who)
	}
	p.lines[h] = line
	fmt.Fprintf(p.digest, "%x %d %s\n", h, who.Role, who.Name)
	return column, nil
}

// A word is a word of a line, and the column in which it begins.
type word struct {
	text   string
	column int
}

var wordPattern = regexp.MustCompile(`[^ \t\r\n]+`)

// words returns the words of a line up to a comment.
func words(line string) (all []word) {
	for _, at := range wordPattern.FindAllStringIndex(line, -1) {
		if line[at[0]] == '#' {
			break
		}
		all = append(all, word{line[at[0]:at[1]], at[0] + 1})
	}
	return all
}

// parseLine returns the token of a line that is not empty and its identity. column is
// the place of an error.
func parseLine(w []word) (h hash, who Identity, column int, err error) {
	role, err := RoleNamed(w[0].text)
	if err != nil {
		return h, who, w[0].column, err
	}
	if len(w) == 1 {
		return h, who, w[0].column + len(w[0].text), errors.New("there is no token; want: role token [name]")
	}
	name := role.String()
	if cert, ok := strings.CutPrefix(w[1].text, certPrefix); ok {
		h, name, err = sha256.Sum256([]byte(w[1].text)), cert, validCertificate(cert)
	} else {
		h, err = parseToken(w[1].text)
	}
	if err != nil {
		return h, who, w[1].column, err
	}
	if len(w) > 2 {
		name = w[2].text
		if !namePattern.MatchString(name) {
			return h, who, w[2].column, errors.New("a name is up to 64 letters, digits and . _ - @ of ASCII")
		}
	}
	if len(w) > 3 {
		return h, who, w[3].column, errors.New("there is more than role, token and name; comments begin with #")
	}
	return h, Identity{role, name}, w[1].column, nil
}

var (
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)
	tokenPattern = regexp.MustCompile(`^[!-~]*$`)
)

// validCertificate returns an error for what is no name of a certificate.
func validCertificate(name string) error {
	if name == "" || len(name) > maxCertificate || !tokenPattern.MatchString(name) {
		return fmt.Errorf("%s is followed by %d characters; want 1 to %d visible ones of ASCII: a URI, a DNS name or a common name", certPrefix, len(name), maxCertificate)
	}
	return nil
}

// parseToken returns the hash of the token s, or the hash in s.
func parseToken(s string) (h hash, err error) {
	if digits, ok := strings.CutPrefix(s, hashPrefix); ok {
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) != len(h) {
			return h, fmt.Errorf("%s is followed by %d characters; want %d hexadecimal digits", hashPrefix, len(digits), 2*len(h))
		}
		return hash(b), nil
	}
	if len(s) < MinToken || len(s) > MaxToken {
		return h, fmt.Errorf("the token has %d characters: must be %d to %d", len(s), MinToken, MaxToken)
	}
	if !tokenPattern.MatchString(s) {
		return h, errors.New("the token has other characters than the visible ones of ASCII")
	}
	return sha256.Sum256([]byte(s)), nil
}

// ReadToken returns the token in a file that a client sends to do what needs the role need. The file has
// one word, the token, or is a token file of a server: then it is the first token with the least
// role that includes need, or else with the most. Tokens that are given as hashes cannot be sent.
func ReadToken(path string, need Role) (string, error) {
	text, err := os.ReadFile(path) // a pipe, too
	if err != nil {
		return "", err
	}
	if one := strings.Fields(string(text)); len(one) == 1 {
		return one[0], nil
	}
	if _, err := Parse(bytes.NewReader(text), path); err != nil {
		return "", err
	}
	best, token := None, ""
	for line := range strings.Lines(string(text)) {
		w := words(line)
		if len(w) == 0 || strings.HasPrefix(w[1].text, hashPrefix) || strings.HasPrefix(w[1].text, certPrefix) {
			continue
		}
		role, _ := RoleNamed(w[0].text) // Parse has validated it
		if better := role.May(need) && role < best || !best.May(need) && role > best; token == "" || better {
			best, token = role, w[1].text
		}
	}
	if token == "" {
		return "", fmt.Errorf("%s: only hashes of tokens, or names of certificates: must have a token to send", path)
	}
	return token, nil
}
