package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A suggestGroup is events that have limits of their own.
type suggestGroup struct {
	text       string      // as it was given; "" for all events
	conditions [][2]string // fields and patterns
	when       match.When
	name       string // begins the names of its rules
	need       int64  // how many of its keys must never be refused
	auto       bool   // it was not asked for

	keys *keyColumn
	from []int // see keyColumn.byKey
	own  []int32
}

// addGroups compiles the groups of all events and of these conditions, and makes r keep
// the fields that they look at.
func (s *suggesting) addGroups(r *run, texts []string) (err error) {
	if s.key, err = rulevalue.ParseKey(match.Fold{}, r.Key); err != nil {
		return err
	}
	s.groups = []suggestGroup{{name: ruleName(r.Key)}}
	fields, err := r.eventFields()
	if err != nil {
		return err
	}
	for _, text := range texts {
		g, err := newGroup(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("--group: %q: must be a field and a pattern, such as \"path /login\" or \"status 4xx\"", strings.TrimSpace(text))
		}
		if err := knownField("--group", g.conditions[0][0], fields); err != nil {
			return err
		}
		s.groups = append(s.groups, g)
	}
	for i := range s.groups {
		g := &s.groups[i]
		rs, err := newRuleset(g.option(r.Key), []ratelimit.Rule{s.all(g)}, nil)
		if err != nil {
			return err
		}
		r.rulesets = append(r.rulesets, rs)
	}
	r.fields = r.usedFields()
	return nil
}

// newGroup returns the group of events for which all these conditions hold, such as
// "path /login".
func newGroup(conditions ...string) (g suggestGroup, err error) {
	g.text = strings.Join(conditions, ", ")
	g.name = ruleName(g.text)
	for _, text := range conditions {
		field, pattern, ok := strings.Cut(text, " ")
		pattern = strings.TrimSpace(pattern)
		if err = when.Add(&g.when, field, pattern); err != nil || !ok {
			return g, fmt.Errorf("%q: must be a field and a pattern", text)
		}
		g.conditions = append(g.conditions, [2]string{field, pattern})
	}
	return g, nil
}

func (g *suggestGroup) option(key string) string {
	if g.text == "" {
		return "--key " + key
	}
	return "--group " + g.text
}

// take takes over which events of which keys j judged.
func (g *suggestGroup) take(j *judging) {
	g.keys = j.columns[0]
	g.from, g.own = g.keys.byKey(j.outcomes.has)
}

// addOwnGroups adds groups of the events in which outliers differ from others: requests
// that fail, and logins.
func (s *suggesting) addOwnGroups(ctx context.Context) error {
	var texts [][]string
	if slices.ContainsFunc(s.outliers, func(o Outlier) bool { return o.Kind == Scan }) {
		texts = append(texts, []string{"status 4xx"})
	}
	slices.Sort(s.logins)
	for _, path := range slices.Compact(s.logins) {
		texts = append(texts, []string{"method POST", "path " + path})
	}
	var groups []suggestGroup
	var rs []ratelimit.Rule
	for _, conditions := range texts {
		g, err := newGroup(conditions...)
		if err == nil && !slices.ContainsFunc(s.groups, func(given suggestGroup) bool { return given.text == g.text }) {
			g.auto = true
			groups, rs = append(groups, g), append(rs, s.all(&g))
		}
	}
	if len(groups) == 0 {
		return nil
	}
	if err := s.judge(ctx, rs); err != nil {
		return err
	}
	for i := range groups {
		groups[i].take(s.judgings[i])
		s.groups = append(s.groups, groups[i])
	}
	return nil
}

// ruleName returns text with what cannot be in the name of a rule replaced.
func ruleName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.') {
			return r
		}
		return '-'
	}, text)
	const most = 48
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.Trim(name[:min(len(name), most)], "-")
}
