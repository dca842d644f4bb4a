package rules

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
)

var cacheKeys = []string{"ttl: 10s", "max_age", "max_bytes"}

// readCache reads the key cache of a hot rule.
func (r *reader) readCache(n ast.Node) *hotkey.CachePolicy {
	if n == nil {
		return nil
	}
	m, p := r.Mapping(n, "cache", cacheKeys), &hotkey.CachePolicy{}
	p.TTL, _ = yamlfile.One(&r.Reader, m["ttl"], "ttl", rulevalue.Duration)
	p.MaxAge, _ = yamlfile.One(&r.Reader, m["max_age"], "max_age", rulevalue.Duration)
	p.MaxBytes, _ = yamlfile.One(&r.Reader, m["max_bytes"], "max_bytes", rulevalue.ParseBytes)
	return p
}

// readHotKeys reads a list of keys, called what in messages: values of the one field of k,
// or lists of the values of all.
func (r *reader) readHotKeys(n ast.Node, what string, k match.Key) (keys []string) {
	if n == nil || len(k.Fields()) == 0 {
		return nil
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Fail(n, "%s: %s: must be a list of keys", what, yamlfile.Describe(n))
		return nil
	}
	for _, n := range list.Values {
		key, err := k.Join(nil, yamlfile.All(&r.Reader, n, what, func(s string) (string, error) { return s, nil })...)
		if err != nil {
			r.Fail(n, "%s: %v", what, err)
			continue
		}
		keys = append(keys, string(key))
	}
	r.Found(what, n)
	return keys
}
