package replay

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/lately-go/lately/match"
)

// A keyList is a list of values of one field. If that is the client, networks stand for
// the addresses in them.
type keyList struct {
	field    string
	values   map[string]bool
	networks []netip.Prefix
}

func newKeyList(field string, values []string) *keyList {
	l := &keyList{field: field, values: make(map[string]bool)}
	for _, v := range values {
		l.values[v] = true
		if p, err := match.ParsePrefix(v); err == nil && field == match.Client.String() {
			l.networks = append(l.networks, p)
		}
	}
	return l
}

// has reports whether the list has a value of the field.
func (l *keyList) has(value string) bool {
	return l.values[value] || len(l.networks) > 0 && match.InPrefixes(l.networks, []byte(value))
}

// hasAny reports whether the list has the value of the field in a key of these fields. A
// network in a key, as the address of a client is folded, is in the list if it has an
// address in common with it.
func (l *keyList) hasAny(fields, values []string) bool {
	for i, name := range fields {
		value, ok := values[i], name == l.field
		if alternatives := strings.Split(name, " | "); len(alternatives) > 1 && slices.Contains(alternatives, l.field) {
			value, ok = strings.CutPrefix(value, l.field+":")
		}
		if !ok {
			continue
		}
		if l.has(value) {
			return true
		}
		if p, err := match.ParsePrefix(value); err == nil && slices.ContainsFunc(l.networks, p.Overlaps) {
			return true
		}
	}
	return false
}
