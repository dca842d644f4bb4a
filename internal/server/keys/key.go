// Package keys reads, checks and selects the keys that clients name.
//
// A key is given as its values, in the order of the fields of the rule or counter that
// counts by it. Client addresses are folded and paths cleaned as in events, so that a key
// is the same with and without an event. Protocols with one string for a key join the
// values by [Separator].
package keys

import (
	"strings"
	"unsafe"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/match"
)

const (
	// Max is the longest value of a key, in bytes. Other values of an event may be longer.
	Max = 1024

	// Separator joins the values of a key of several fields in one string.
	Separator = '\t'
)

// Text returns a key as one text, as RESP and the log have it.
func Text(values []string) string { return strings.Join(values, string(Separator)) }

// Split appends to dst the values of a key of k, for [Join], from one text with [Separator]
// between them. The value of a key of one field is the whole text, even if it contains a
// separator; a value of a key of several fields cannot contain it. Its errors are of *apierror.Error.
func Split(dst []string, k *match.Key, text string) ([]string, error) {
	fields := len(k.Fields())
	if fields <= 1 {
		return append(dst, text), nil
	}
	if n := 1 + strings.Count(text, string(Separator)); n != fields {
		_, err := k.Join(nil, make([]string, n)...)
		return dst, apierror.New(api.BadArg, "%v", err)
	}
	for value := range strings.SplitSeq(text, string(Separator)) {
		dst = append(dst, value)
	}
	return dst, nil
}

// Join appends to dst the key that k makes of these values. Its errors are of *apierror.Error.
func Join(dst []byte, k *match.Key, values []string) ([]byte, error) {
	if err := CheckValues(k, values); err != nil {
		return dst, err
	}
	key, err := k.Join(dst, values...)
	if err != nil {
		return dst, apierror.New(api.BadArg, "%v", err)
	}
	return key, nil
}

// CheckValues returns an error if a value of a key of k is too long. It does not check their number.
func CheckValues(k *match.Key, values []string) error {
	for i, v := range values {
		if len(v) > Max {
			fields := k.Fields()
			return tooLong(fields[min(i, len(fields)-1)], len(v))
		}
	}
	return nil
}

// Check returns an error if a value in key, which k has made, is too long.
func Check(k *match.Key, key []byte) error {
	i := 0
	for value := range k.Parts(key) {
		if len(value) > Max {
			return tooLong(k.Fields()[i], len(value))
		}
		i++
	}
	return nil
}

// tooLong returns the error for a value of n bytes in a key.
func tooLong(field string, n int) error {
	return apierror.New(api.BadArg, "%s: %d bytes: must be at most %d in the key of a rule or counter", field, n, Max)
}

// View returns b, of a key or another part of a request, as a string that is valid until b changes.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
