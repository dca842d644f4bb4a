package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

var fieldKeys = []string{"header", "cookie", "bearer", "query", "trusted", "hash", "missing"}

// readFields reads the section fields: where requests have the fields of rules.
func (r *reader) readFields(n ast.Node) {
	pairs, _ := r.Pairs(n, "fields", `a mapping of names, such as "api_key: {header: X-API-Key}"`)
	for _, p := range pairs {
		mistakes := len(r.errs)
		s := r.readSource(p)
		if err := intake.Validate(&s); err != nil && len(r.errs) == mistakes {
			r.Fail(p.At, "fields: %v", err)
		}
		if s.Field = p.Key; len(r.errs) == mistakes {
			r.addField(p.At, s)
		} else {
			r.declared = append(r.declared, s.Field) // so that its uses are not mistakes, too
		}
	}
}

// addField adds the declaration s at n. Several files may have the same one.
func (r *reader) addField(n ast.Node, s match.Source) {
	i := slices.IndexFunc(r.fields, func(other match.Source) bool { return other.Field == s.Field })
	switch {
	case i < 0:
		r.fields, r.fieldsAt[s.Field] = append(r.fields, s), r.placeOf(n)
		r.declared = append(r.declared, s.Field)
	case r.fields[i] != s:
		r.Fail(n, "fields: field %q: not as in %s: must be the same in all files, or in one of them", s.Field, r.fieldsAt[s.Field].from(r.file))
	}
}

func (r *reader) readSource(p yamlfile.Pair) (s match.Source) {
	if err := rulevalue.CheckFieldName(p.Key); err != nil {
		r.Fail(p.At, "fields: %v", err)
		return s
	}
	m := r.Mapping(p.Value, "field "+rulevalue.Clip(p.Key), fieldKeys)
	s.Field = p.Key
	s.Header, _ = yamlfile.One(&r.Reader, m["header"], "header", yamlfile.NonEmpty)
	s.Cookie, _ = yamlfile.One(&r.Reader, m["cookie"], "cookie", yamlfile.NonEmpty)
	s.Query, _ = yamlfile.One(&r.Reader, m["query"], "query", yamlfile.NonEmpty)
	var given bool
	if s.Bearer, given = yamlfile.One(&r.Reader, m["bearer"], "bearer", yamlfile.Bool); given && !s.Bearer {
		r.Fail(m["bearer"], "bearer: false: must be true, or be left out")
	}
	s.Trusted, _ = yamlfile.One(&r.Reader, m["trusted"], "trusted", yamlfile.Bool)
	s.Hash, _ = yamlfile.One(&r.Reader, m["hash"], "hash", yamlfile.Bool)
	missing, _ := yamlfile.One(&r.Reader, m["missing"], "missing", yamlfile.OneOf("skip", "share", "refuse"))
	s.Share, s.Refuse = missing == 1, missing == 2
	return s
}

// checkTrust records a mistake if a ban of rule, whose key is at n, counts by a field that a client can
// make up: it could get others banned, and fill the list of bans. A client that is a part of the key can
// only ban itself.
func (r *reader) checkTrust(n ast.Node, rule *ratelimit.Rule) {
	if rule.Ban == nil || slices.Contains(rule.Key.Fields(), match.Client.String()) {
		return
	}
	for _, name := range keyvalue.Fields(rule.Key) {
		i := slices.IndexFunc(r.fields, func(s match.Source) bool { return s.Field == name })
		if i < 0 || r.fields[i].Trusted || !intake.FromRequest(&r.fields[i]) {
			continue
		}
		r.Fail(n, "key: field %q: a client can make up its values, and so get others banned: must be trusted, as in \"%s\", if a proxy sets or checks it, or have client beside it: [client, %s]",
			name, declaration(&r.fields[i], "trusted: true"), name)
	}
}

// isHashed reports whether the values of a field are hashed.
func (r *reader) isHashed(name string) bool {
	return slices.ContainsFunc(r.fields, func(s match.Source) bool { return s.Field == name && s.Hash })
}

// checkUnhashed records a mistake, and reports false, if a field whose values are hashed stands at n, where that
// cannot be.
func (r *reader) checkUnhashed(n ast.Node, what, why string, names ...string) bool {
	for _, name := range names {
		if r.isHashed(name) {
			r.Fail(n, "%s: field %q: its values are hashed, and %s: must be another field", what, name, why)
			return false
		}
	}
	return true
}

// checkShared records a mistake, and reports false, if a field of the alternatives names, at n, is shared by events without
// it, and so leaves none for what follows it.
func (r *reader) checkShared(n ast.Node, names []string) bool {
	for _, name := range names[:len(names)-1] {
		if slices.ContainsFunc(r.fields, func(s match.Source) bool { return s.Field == name && s.Share }) {
			r.Fail(n, "key: field %q: events without it share one key (missing: share), so that what follows is never used: must be last", name)
			return false
		}
	}
	return true
}

// declaration returns the declaration of s in the file, with what more has.
func declaration(s *match.Source, more ...string) string {
	var parts []string
	add := func(key, value string, set bool) {
		if set {
			parts = append(parts, key+": "+value)
		}
	}
	add("header", s.Header, s.Header != "")
	add("cookie", s.Cookie, s.Cookie != "")
	add("bearer", "true", s.Bearer)
	add("query", s.Query, s.Query != "")
	add("hash", "true", s.Hash)
	add("missing", "share", s.Share)
	add("missing", "refuse", s.Refuse)
	return s.Field + ": {" + strings.Join(append(parts, more...), ", ") + "}"
}

// sourceSentence returns the meaning of s as a sentence after its name.
func sourceSentence(s *match.Source) string {
	from := "what CHECK, a request in JSON, a program or a log gives"
	if intake.FromRequest(s) {
		from = intake.Place(s)
	}
	text := fmt.Sprintf("field %s: %s", s.Field, from)
	if intake.FromRequest(s) && s.Trusted {
		text += ", which clients cannot make up"
	}
	if s.Hash {
		text += ", of which a keyed digest is kept"
	}
	switch {
	case s.Share:
		text += "; requests without it count together"
	case s.Refuse:
		text += "; rules that count by it refuse requests without it"
	}
	return text + "."
}
