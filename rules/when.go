package rules

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/address"
	"github.com/lately-go/lately/internal/eventfield"
	"github.com/lately-go/lately/internal/intake"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/internal/spelling"
	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// readKey reads the fields that a rule counts by, each of which may be several, as in
// "user | client". A client may be a network, as in "client/24,48".
func (r *reader) readKey(n ast.Node) match.Key {
	if n == nil || !r.atMost(n, "key", keyvalue.MaxFields) {
		return match.Key{}
	}
	parse := func(s string) (string, error) {
		if s == "" {
			return "", errors.New("must be a field such as client, or a list of fields")
		}
		return s, nil
	}
	k, fold := match.Key{}, r.fold
	for at, text := range each(r, n, "key", parse) {
		fields := strings.Split(text, "|")
		valid := true
		for i := range fields {
			var err error
			if fields[i], err = rulevalue.KeyField(fields[i], &fold); err != nil {
				r.fail(at, "%v", err)
				valid = false
			}
			valid = valid && r.checkField(at, "key", fields[i])
		}
		if !valid || !r.checkShared(at, fields) {
			continue
		}
		more, err := match.NewKey(fold, append(k.Fields(), strings.Join(fields, " | "))...)
		if err != nil {
			r.fail(at, "%v", err)
			continue
		}
		k = more
	}
	return k
}

// checkField records a mistake, and reports false, if name, which stands at n, is not a field that
// rules can use.
func (r *reader) checkField(n ast.Node, what, name string) bool {
	if !r.checkFieldName(n, what, name) {
		return false
	}
	if !intake.NeedsSource(name) || r.fieldsAt[name] != (place{}) {
		return true
	}
	names := eventfield.WellKnown()
	for i := range r.fields {
		names = append(names, r.fields[i].Field)
	}
	if near := spelling.Nearest(name, names, 1); near != "" {
		r.fail(n, "%s: field %q: unknown: did you mean %s?", what, name, near)
		return false
	}
	r.fail(n, `%s: field %q: unknown: must be declared under fields with the place that has it, as in "%s: {header: NAME}", or cookie, bearer or query, or "%s: {}" if CHECK, a program or a log gives it`,
		what, name, name, name)
	return false
}

// checkFieldName records a mistake, and reports false, if name cannot be the name of a field.
func (r *reader) checkFieldName(n ast.Node, what, name string) bool {
	if _, err := parseName(name); err != nil {
		r.fail(n, "%s: field %q: %v", what, rulevalue.Clip(name), err)
		return false
	}
	lower := strings.ToLower(name)
	if slices.Contains([]string{"cost", "reserve", "outcome", "at"}, lower) {
		r.fail(n, "%s: field %q: must be another name, as commands use this one", what, name)
		return false
	}
	if lower == "not" {
		r.fail(n, "%s: %q: must be directly under when, with the conditions that must not hold", what, name)
		return false
	}
	if _, known := eventfield.Named(lower); known && lower != name {
		r.fail(n, "%s: field %q: did you mean %s?", what, name, lower)
		return false
	}
	return true
}

// readWhen reads a condition, or a list of them as alternatives.
func (r *reader) readWhen(n ast.Node) match.When {
	mistakes := len(r.errs)
	all := r.readConditions(n, "when")
	if len(r.errs) == mistakes {
		r.found("when", n)
	}
	if len(all) == 1 {
		return all[0]
	}
	return match.When{Any: all}
}

// readConditions reads n, a condition or a list of them, called what in messages.
func (r *reader) readConditions(n ast.Node, what string) (all []match.When) {
	nodes := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok && len(list.Values) > 0 {
		nodes = list.Values
	}
	for _, n := range nodes {
		all = append(all, r.readCondition(n, what))
	}
	return all
}

// readCondition reads a condition. Each value is compiled by itself, so that a bad one is
// reported at its position.
func (r *reader) readCondition(n ast.Node, what string) (w match.When) {
	const must = "a mapping of fields and their values, or a list of such mappings"
	pairs, ok := r.pairs(n, what, must)
	if ok && len(pairs) == 0 {
		r.fail(n, "%s: empty: must be %s, or be left out", what, must)
	}
	for _, p := range pairs {
		if p.key == "not" && what == "when" {
			w.Not = r.readConditions(p.value, p.key)
			continue
		}
		if !r.checkField(p.at, what, p.key) || !r.checkUnhashed(p.at, what, "no rule can have them", p.key) {
			continue
		}
		if p.key == "client" {
			w.Client = r.readPrefixes(p.value, "client")
			continue
		}
		for at, value := range each(r, p.value, p.key, parseText) {
			if upper := strings.ToUpper(value); p.key == "method" && upper != value {
				r.warn(at, "method: %q: methods are compared exactly; did you mean %q?", rulevalue.Clip(value), rulevalue.Clip(upper))
			}
			if err := when.Add(&w, p.key, value); err != nil {
				r.fail(at, "%v", err)
			}
		}
	}
	return w
}

func parseText(s string) (string, error) {
	if s == "" {
		return "", errors.New("must be a value or a list of values")
	}
	return s, nil
}

// readPrefixes reads addresses and prefixes, called what in messages.
func (r *reader) readPrefixes(n ast.Node, what string) (prefixes []netip.Prefix) {
	for at, s := range each(r, n, what, parseText) {
		p, err := address.ParsePrefix(s)
		if err != nil {
			r.fail(at, "%s: %v", what, err)
			continue
		}
		if p.Bits() == 0 {
			family := "IPv6"
			if p.Addr().Is4() {
				family = "IPv4"
			}
			r.warn(at, "%s: %s: every %s address is in it", what, p, family)
		}
		prefixes = append(prefixes, p)
	}
	return prefixes
}
