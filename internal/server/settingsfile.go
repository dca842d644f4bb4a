package server

import (
	"cmp"
	"slices"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/rules"
)

// rulesSections is the keys of a rules file, which may be given instead of a settings file.
var rulesSections = []string{"version", "client", "fields", "counters", "limits", "bans", "hot", "allow"}

// ReadSettings sets in c the settings of a settings file: YAML like a rules file, under the same restrictions, but only
// a mapping from names to texts or lists of texts. The error is [rules.Errors].
func ReadSettings(c *Config, file string, data []byte) error {
	var errs rules.Errors
	r := &yamlfile.Reader{Report: func(line, column int, _ bool, message string) {
		errs = append(errs, &rules.Error{File: file, Line: line, Column: column, Message: message})
	}}
	readSettings(r, c, file, data)
	if len(errs) == 0 {
		return nil
	}
	slices.SortStableFunc(errs, func(a, b *rules.Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return errs
}

func readSettings(r *yamlfile.Reader, c *Config, file string, data []byte) {
	all := c.Settings()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	pairs, _ := r.Pairs(r.Tree(string(data), 0), "file", "a mapping of settings")
	for _, p := range pairs {
		i := slices.Index(names, p.Key)
		switch near := spelling.Nearest(p.Key, names, yamlfile.Slips); {
		case slices.Contains(rulesSections, p.Key):
			r.Fail(p.At, "this looks like a rules file, since it has %q: give it with --rules, or name it in the settings file as \"rules: %s\"", p.Key, file)
			return
		case i < 0 && near != "":
			r.Fail(p.At, "unknown setting %q: did you mean %s?", rulevalue.Clip(p.Key), near)
		case i < 0:
			r.Fail(p.At, "unknown setting %q: must be one that lately serve --help lists, such as %s", rulevalue.Clip(p.Key), names[0])
		default:
			values := yamlfile.All(r, p.Value, p.Key, yamlfile.NonEmpty)
			if err := all[i].Set(values...); len(values) > 0 && err != nil {
				r.Fail(p.Value, "%v", err)
			}
		}
	}
}
