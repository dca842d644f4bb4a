package match

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// An Intake replaces the values of hashed fields by keyed digests, in events and in the keys
// of rules, before anything else sees them, and gives events the shared fields that they lack. It does
// not change, and is safe for concurrent use. A nil Intake changes nothing.
type Intake struct {
	hashed []ref
	shared []ref
	params []string  // of the query, whose values are hashed
	macs   sync.Pool // hash.Hash
}

// NewIntake returns the Intake of the fields that are declared with Hash, whose digests hang
// on key, or with Share, or nil if there is none. The same key gives the same digests.
func NewIntake(declared []Source, key [32]byte) *Intake {
	in := &Intake{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key[:]) }}}
	for i := range declared {
		if r := newRef(declared[i].Field); declared[i].Hash && !in.hashes(r) {
			in.hashed = append(in.hashed, r)
			if declared[i].Query != "" {
				in.params = append(in.params, declared[i].Query)
			}
		}
	}
	for i := range declared {
		if declared[i].Share {
			in.shared = append(in.shared, newRef(declared[i].Field))
		}
	}
	if len(in.hashed)+len(in.shared) == 0 {
		return nil
	}
	return in
}

// Event replaces the values of e's hashed fields, and sets shared ones that e lacks. It appends the
// digests to buf, and returns the extended buffer: e has views of it. If e was not reset since an earlier call, its digests stay.
func (in *Intake) Event(e *Event, buf []byte) []byte { return in.event(e, buf, false) }

// KeptEvent is Event for events that are kept, of which some fields may be digests already. These stay.
func (in *Intake) KeptEvent(e *Event, buf []byte) []byte { return in.event(e, buf, true) }

func (in *Intake) event(e *Event, buf []byte, kept bool) []byte {
	if in == nil {
		return buf
	}
	kept, e.received = kept || e.received, true
	for i := range in.hashed {
		r := &in.hashed[i]
		v := r.get(e)
		if len(v) == 0 || kept && IsDigest(string(v)) {
			continue
		}
		from := len(buf)
		buf = in.appendDigest(buf, v)
		e.SetNamed(r.name, buf[from:len(buf):len(buf)])
	}
	for i := range in.shared {
		if r := &in.shared[i]; len(r.get(e)) == 0 {
			e.SetNamedString(r.name, Missing)
		}
	}
	if query := e.known[Query]; len(in.params) > 0 && len(query) > 0 {
		from := len(buf)
		buf = in.appendQuery(buf, string(query), kept)
		e.known[Query] = buf[from:len(buf):len(buf)]
	}
	return buf
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
		dst = in.appendDigest(append(append(dst, name...), '='), view(DecodeQuery(value)))
	}
	return dst
}

// DecodeQuery returns a name or value of a query, decoded, or as it is if it cannot be decoded.
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
// alternatives begins with the name of one, as for [Key.Join]; if it does not, it is an
// error, which does not show the value.
func (in *Intake) Values(k *Key, values []string) error { return in.values(k, values, false) }

// ListedValues is Values for people who copy keys from lists: what has the form of a digest
// stays as it is. It is not for the keys of requests: a client that sends the digest of
// another would be taken for it.
func (in *Intake) ListedValues(k *Key, values []string) error { return in.values(k, values, true) }

func (in *Intake) values(k *Key, values []string, listed bool) error {
	if in == nil || len(values) != len(k.get().refs) {
		return nil // Join rejects another number
	}
	for i := range values {
		r, v, name := &k.get().refs[i], values[i], ""
		if r.either != nil {
			one, rest := r.given(v)
			if one == nil && slices.ContainsFunc(r.either, in.hashes) {
				return fmt.Errorf("key value %d: %s: must be %s", i+1, r.name, strings.Join(r.names(), ":VALUE or ")+":VALUE")
			} else if one == nil {
				continue // which Join rejects
			}
			r, v, name = one, rest, one.name+":"
		}
		if v != "" && in.hashes(*r) && !(listed && IsDigest(v)) {
			values[i] = name + string(in.appendDigest(nil, view(v)))
		}
	}
	return nil
}

// Digest returns the digest of a value, or "" if no field is hashed.
func (in *Intake) Digest(v string) string {
	if in == nil || len(in.hashed) == 0 || v == "" {
		return ""
	}
	return string(in.appendDigest(nil, view(v)))
}

// Hashes reports whether a value of k is hashed.
func (in *Intake) Hashes(k *Key) bool {
	return in != nil && slices.ContainsFunc(k.get().refs, func(r ref) bool { return in.hashes(r) || slices.ContainsFunc(r.either, in.hashes) })
}

func (in *Intake) hashes(r ref) bool {
	return slices.ContainsFunc(in.hashed, func(h ref) bool { return h.name == r.name })
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
