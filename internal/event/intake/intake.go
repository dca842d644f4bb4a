// Package intake checks where fields of requests come from, gives events the shared fields that they lack, and replaces
// the values of hashed fields before any other package sees them.
package intake

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// An Intake replaces the values of hashed fields by keyed digests, in events and in the keys
// of rules, before anything else sees them, and gives events the shared fields that they lack. It does
// not change, and is safe for concurrent use. A nil Intake changes nothing.
type Intake struct {
	hashed []string
	shared []string
	params []string  // of the query, whose values are hashed
	macs   sync.Pool // hash.Hash
}

// ProcessKey is the key of intakes that were given none: a random one, so that digests are
// others after each start.
var ProcessKey = sync.OnceValue(func() (key [32]byte) {
	_, _ = rand.Read(key[:]) // it never fails
	return key
})

// New returns the Intake of the fields that are declared with Hash, whose digests depend
// on key, or with Share, or nil if there is none. The same key gives the same digests.
func New(declared []match.Source, key [32]byte) *Intake {
	in := &Intake{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key[:]) }}}
	for i := range declared {
		if d := &declared[i]; d.Hash && !in.hashes(d.Field) {
			in.hashed = append(in.hashed, d.Field)
			if d.Query != "" {
				in.params = append(in.params, d.Query)
			}
		}
		if declared[i].Share {
			in.shared = append(in.shared, declared[i].Field)
		}
	}
	if len(in.hashed)+len(in.shared) == 0 {
		return nil
	}
	return in
}

// Digests is the memory of the digests of one event, for its reuse. Events hold views of it.
type Digests struct {
	values [][]byte
	query  []byte
}

// made reports whether v is a digest that was made before, and not bytes that look like one.
func (d *Digests) made(v []byte) bool {
	return slices.ContainsFunc(d.values, func(one []byte) bool { return len(one) > 0 && &one[0] == &v[0] })
}

// Event replaces the values of e's hashed fields, and sets shared ones that e lacks. The digests
// are in d, which must not be used for another event while e is in use. If e was not reset since
// an earlier call with d, its digests stay.
func (in *Intake) Event(e *match.Event, d *Digests) { in.event(e, d, false) }

// KeptEvent is Event for events that are kept, of which some fields may be digests already. These stay.
func (in *Intake) KeptEvent(e *match.Event, d *Digests) { in.event(e, d, true) }

func (in *Intake) event(e *match.Event, d *Digests, kept bool) {
	if in == nil {
		return
	}
	if n := len(in.hashed); len(d.values) < n {
		d.values = make([][]byte, n)
	}
	for i, name := range in.hashed {
		v := e.GetNamed(name)
		if len(v) == 0 || d.made(v) || kept && IsDigest(string(v)) {
			continue
		}
		d.values[i] = in.appendDigest(d.values[i][:0], v)
		e.SetNamed(name, d.values[i])
	}
	for _, name := range in.shared {
		if len(e.GetNamed(name)) == 0 {
			e.SetNamedString(name, Missing)
		}
	}
	query := e.Get(match.Query)
	if len(in.params) == 0 || len(query) == 0 || len(d.query) > 0 && &query[0] == &d.query[0] {
		return
	}
	d.query = in.appendQuery(d.query[:0], string(query), kept)
	e.Set(match.Query, d.query)
}

// appendQuery appends query with digests in place of the values of hashed parameters.
func (in *Intake) appendQuery(dst []byte, query string, kept bool) []byte {
	for i, pair := range strings.Split(query, "&") {
		if i > 0 {
			dst = append(dst, '&')
		}
		name, value, _ := strings.Cut(pair, "=")
		decoded := DecodeQuery(name)
		if value == "" || !slices.Contains(in.params, decoded) || kept && IsDigest(value) {
			dst = append(dst, pair...)
			continue
		}
		dst = in.appendDigest(append(append(dst, name...), '='), []byte(DecodeQuery(value)))
	}
	return dst
}

// DecodeQuery returns a name or value of a query, decoded, or unchanged if it cannot be decoded.
func DecodeQuery(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// Values replaces those of values that are hashed fields of k. The value of a field with
// alternatives begins with the name of one, as for [match.Key.Join]; if it does not, it is an
// error, which does not show the value.
func (in *Intake) Values(k match.Key, values []string) error { return in.values(k, values, false) }

// ListedValues is Values for people who copy keys from lists: what has the form of a digest
// is not changed. It is not for the keys of requests: a client that sends the digest of
// another would be taken for it.
func (in *Intake) ListedValues(k match.Key, values []string) error { return in.values(k, values, true) }

func (in *Intake) values(k match.Key, values []string, listed bool) error {
	if in == nil || len(in.hashed) == 0 || len(values) != len(k.Fields()) {
		return nil // Join rejects another number
	}
	for i, name := range k.Fields() {
		v, prefix := values[i], ""
		if strings.Contains(name, keyvalue.Separator) {
			if !in.hashes(name) {
				continue
			}
			one, rest := keyvalue.Split(name, v)
			if one == "" {
				return fmt.Errorf("key value %d: %s: must be %s", i+1, name, strings.ReplaceAll(name, keyvalue.Separator, ":VALUE or ")+":VALUE")
			}
			name, v, prefix = one, rest, one+":"
		}
		if v != "" && in.hashes(name) && !(listed && IsDigest(v)) {
			values[i] = prefix + string(in.appendDigest(nil, []byte(v)))
		}
	}
	return nil
}

// Digest returns the digest of a value, or "" if no field is hashed.
func (in *Intake) Digest(v string) string {
	if in == nil || len(in.hashed) == 0 || v == "" {
		return ""
	}
	return string(in.appendDigest(nil, []byte(v)))
}

// Hashes reports whether a value of k is hashed.
func (in *Intake) Hashes(k match.Key) bool {
	return in != nil && slices.ContainsFunc(k.Fields(), in.hashes)
}

// hashes reports whether the field of a key, or one of its alternatives, is hashed.
func (in *Intake) hashes(name string) bool {
	for one := range strings.SplitSeq(name, keyvalue.Separator) {
		if slices.Contains(in.hashed, one) {
			return true
		}
	}
	return false
}

const (
	digestPrefix = "hmac-"
	digestBytes  = 16 // of the HMAC-SHA-256
)

var digestEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// appendDigest appends the digest of v: "hmac-" and 26 letters and digits. [Ambiguous] and [Missing]
// are no secrets, and stay.
func (in *Intake) appendDigest(dst, v []byte) []byte {
	if string(v) == Ambiguous || string(v) == Missing {
		return append(dst, v...)
	}
	mac := in.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write(v)
	var sum [sha256.Size]byte
	mac.Sum(sum[:0])
	in.macs.Put(mac)
	return digestEncoding.AppendEncode(append(dst, digestPrefix...), sum[:digestBytes])
}

// IsDigest reports whether v has the form of a digest of a hashed field.
func IsDigest(v string) bool {
	digits, ok := strings.CutPrefix(v, digestPrefix)
	return ok && len(digits) == digestEncoding.EncodedLen(digestBytes) && strings.Trim(digits, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
