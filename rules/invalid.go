package rules

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/internal/rule/yamlfile"
)

// A ruleText is the text of a rule.
type ruleText struct {
	file     string
	at       ast.Node
	places   map[string]ast.Node // see reader.Places
	mistakes bool                // some were found while it was read
}

// readText reads the rule at n by read.
func (r *reader) readText(n ast.Node, read func(ast.Node)) ruleText {
	mistakes := len(r.errs)
	r.Places = make(map[string]ast.Node)
	read(n)
	return ruleText{r.file, n, r.Places, len(r.errs) > mistakes}
}

// failRules records what is wrong with rules, by the error of the set that is made of them. What follows from
// a mistake in the text of a rule, such as that a field which could not be read is missing, is left out.
func (r *reader) failRules(err error, rules []ruleText) {
	wrong, ok := errors.AsType[invalid.Fields](err)
	if !ok && err != nil { // the reader should have found it, and has no better position
		r.FailAt(1, 1, "%v", err)
	}
	for _, f := range wrong {
		rule := &rules[f.Rule]
		r.file = rule.file
		name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		n, found := rule.places[name]
		name, _, _ = strings.Cut(name, "[")
		switch {
		case rule.mistakes && (!found || f.Value == invalid.Missing):
		case !found:
			r.Fail(rule.at, "%s", f.Message())
		case f.Value == "":
			r.Fail(n, "%s: %s", name, f.Must)
		default:
			r.Fail(n, "%s: %s: %s", name, yamlfile.Describe(n), f.Must)
		}
	}
}
