package rules

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
)

// readKey reads the fields that a rule counts by, each of which may be several, as in
// "user | client". A client may be a network, as in "client/24,48".
func (r *reader) readKey(n ast.Node) match.Key {
	if n == nil || !r.AtMost(n, "key", keyvalue.MaxFields) {
		return match.Key{}
	}
	parse := func(s string) (string, error) {
		if s == "" {
			return "", errors.New("must be a field such as client, or a list of fields")
		}
		return s, nil
	}
	k, fold := match.Key{}, r.fold
	for at, text := range yamlfile.Each(&r.Reader, n, "key", parse) {
		fields := strings.Split(text, "|")
		valid := true
		for i := range fields {
			var err error
			if fields[i], err = rulevalue.KeyField(fields[i], &fold); err != nil {
				r.Fail(at, "%v", err)
				valid = false
			}
			valid = valid && r.checkField(at, "key", fields[i])
		}
		if !valid || !r.checkShared(at, fields) {
			continue
		}
		more, err := match.NewKey(fold, append(k.Fields(), strings.Join(fields, " | "))...)
		if err != nil {
			r.Fail(at, "%v", err)
			continue
		}
		k = more
	}
	return k
}

// checkField records a mistake, and reports false, if name, which stands at n, is not a field that
// rules can use.
func (r *reader) checkField(n ast.Node, what, name string) bool {
	err := rulevalue.CheckField(name, r.declared)
	if err != nil {
		r.Fail(n, "%s: %v", what, err)
	}
	return err == nil
}

// readWhen reads a condition, or a list of them as alternatives.
func (r *reader) readWhen(n ast.Node) match.When {
	places, mistakes := r.Places, len(r.errs)
	r.Places = nil // fields of events may have the names of fields of a rule
	all := r.readConditions(n, "when")
	if r.Places = places; len(r.errs) == mistakes {
		r.Found("when", n)
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
	pairs, ok := r.Pairs(n, what, must)
	if ok && len(pairs) == 0 {
		r.Fail(n, "%s: empty: must be %s, or be left out", what, must)
	}
	for _, p := range pairs {
		if p.Key == "not" && what == "when" {
			w.Not = r.readConditions(p.Value, p.Key)
			continue
		}
		if !r.checkField(p.At, what, p.Key) || !r.checkUnhashed(p.At, what, "no rule can have them", p.Key) {
			continue
		}
		if p.Key == "client" {
			w.Client = r.readPrefixes(p.Value, "client")
			continue
		}
		for at, value := range yamlfile.Each(&r.Reader, p.Value, p.Key, yamlfile.NonEmpty) {
			if upper := strings.ToUpper(value); p.Key == "method" && upper != value {
				r.Warn(at, "method: %q: methods are compared exactly; did you mean %q?", rulevalue.Clip(value), rulevalue.Clip(upper))
			}
			if err := when.Add(&w, p.Key, value); err != nil {
				r.Fail(at, "%v", err)
			}
		}
	}
	return w
}

// readPrefixes reads addresses and prefixes, called what in messages.
func (r *reader) readPrefixes(n ast.Node, what string) (prefixes []netip.Prefix) {
	for at, s := range yamlfile.Each(&r.Reader, n, what, yamlfile.NonEmpty) {
		p, err := address.ParsePrefix(s)
		if err != nil {
			r.Fail(at, "%s: %v", what, err)
			continue
		}
		if p.Bits() == 0 {
			family := "IPv6"
			if p.Addr().Is4() {
				family = "IPv4"
			}
			r.Warn(at, "%s: %s: every %s address is in it", what, p, family)
		}
		prefixes = append(prefixes, p)
	}
	return prefixes
}
