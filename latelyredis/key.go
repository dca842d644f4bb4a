package latelyredis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lately-go/lately/match"
)

// maxReadable is the longest subject, in bytes, whose values are readable in the name of a
// key. Of a longer one, the digest is.
const maxReadable = 160

// A namer makes the names of the Redis keys of one rule:
//
//	lately:{client=203.0.113.9}:per-client
//	lately:{client=203.0.113.9,user=ada}:login
//	lately:{path~qjI6j0IhVNNKGZ9Gmz8yjAqjHJHcbmvrkTX9zJ0B3U4}:per-path
//
// In braces is the subject, the key that the rule counts by. It alone decides about the
// slot of a cluster, so the rules of one subject are in one.
type namer struct {
	fields []string // escaped, in the order of the key's
	key    match.Key
	after  string // what follows the subject
}

func newNamer(key match.Key, rule string) namer {
	n := namer{key: key, after: "}:" + escaped(rule)}
	for _, f := range key.Fields() {
		n.fields = append(n.fields, escaped(strings.ReplaceAll(f, " | ", "|")))
	}
	return n
}

// sameSubject reports whether equal keys of n and o are the same subject.
func (n *namer) sameSubject(o *namer) bool { return slices.Equal(n.fields, o.fields) }

// subject returns the prefix and the subject of a key, without the closing brace.
func (n *namer) subject(prefix string, key []byte) string {
	b := make([]byte, 0, 64)
	b = append(append(b, prefix...), '{')
	open := len(b)
	if len(key) <= maxReadable {
		if b = n.appendValues(b, key); len(b) > open && len(b)-open <= maxReadable {
			return string(b)
		}
	}
	b = append(b[:open], strings.Join(n.fields, ",")...)
	sum := sha256.Sum256(key)
	return string(base64.RawURLEncoding.AppendEncode(append(b, '~'), sum[:]))
}

// appendValues appends the fields and values of key to b, or nothing if it is not a key that
// n.key makes.
func (n *namer) appendValues(b, key []byte) []byte {
	base, i, length := len(b), 0, 0
	for v := range n.key.Parts(key) {
		if i == len(n.fields) {
			return b[:base]
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEscaped(append(append(b, n.fields[i]...), '='), v)
		i, length = i+1, length+len(v)
		if len(n.fields) > 1 {
			length += len(binary.AppendUvarint(nil, uint64(len(v))))
		}
	}
	if i < len(n.fields) || length != len(key) {
		return b[:base]
	}
	return b
}

const hexDigits = "0123456789ABCDEF"

// plain are the bytes that stand for themselves in names: no brace, which would move the
// hash tag, and nothing that separates the parts of a name.
var plain = func() (p [256]bool) {
	const others = "-_./:|@+*!"
	for c := range p {
		p[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(others, byte(c)) >= 0
	}
	return p
}()

func escaped(s string) string { return string(appendEscaped(nil, []byte(s))) }

// appendEscaped appends v with all bytes that are not plain as %XX.
func appendEscaped(b, v []byte) []byte {
	for _, c := range v {
		if plain[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return b
}
