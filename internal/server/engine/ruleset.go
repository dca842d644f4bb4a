package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/geo"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A ruleSet is the rules in force, with what decisions need of them. It does not change; a reload replaces it.
type ruleSet struct {
	file    *rules.File
	allow   address.Set
	fields  eventFields
	answers bool     // a limit or ban counts answers
	geo     *geo.DB  // nil if no rule uses its fields
	hashing *hashing // nil if no field is hashed
}

// newRuleSet returns the rule set of file, where old, which may be empty, was in force.
func newRuleSet(config *Config, file *rules.File, old *ruleSet) (*ruleSet, error) {
	fields, err := newEventFields(file, old)
	if err != nil {
		return nil, err
	}
	if err := config.Geo.Check(file); err != nil {
		return nil, err
	}
	r := &ruleSet{file: file, allow: AllowList(file), fields: fields, answers: file.Limits.Internal().CountsAnswers(), hashing: newHashing(file.Limits.Internal().Sources())}
	if geo.Uses(file.Fields()) {
		r.geo = config.Geo
	}
	return r, nil
}

// AllowList returns the addresses that file allows.
func AllowList(file *rules.File) address.Set {
	all := slices.Clone(file.Allow.Clients)
	for i := range file.Allow.Files {
		all = append(all, file.Allow.Files[i].Prefixes...)
	}
	return address.NewSet(all...)
}

// noRules returns the file of an engine without one.
func noRules() *rules.File {
	f, err := rules.Parse("no rules", []byte("version: 1\n"))
	if err != nil {
		panic("engine: an empty rules file is not accepted: " + err.Error())
	}
	f.Text = nil // no operator wrote it
	return f
}

// changesOf returns the differences between two files.
func changesOf(before, next *rules.File) api.RuleChanges {
	c := api.RuleChanges{Added: []string{}, Removed: []string{}, Changed: []string{}}
	old, now := partsOf(before), partsOf(next)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch was, ok := old[name]; {
		case !ok:
			c.Added = append(c.Added, name)
		case !reflect.DeepEqual(was, now[name]):
			c.Changed = append(c.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[name]; !ok {
			c.Removed = append(c.Removed, name)
		}
	}
	return c
}

// partsOf returns the rules and counters of a file by name, as values that can be
// compared.
func partsOf(f *rules.File) map[string]any {
	parts := map[string]any{"allow list": []any{AllowList(f), f.Allow.Crawlers}}
	for _, r := range f.Limits.Rules() {
		parts[r.Name] = *r
	}
	for i := range f.Hot {
		parts[f.Hot[i].Name] = f.Hot[i]
	}
	for _, c := range f.Counters {
		parts["counter "+c.Name] = []any{c.Key, c.When, c.Spans}
	}
	return parts
}

// lost returns how many bans are in force under rules that next removes or gives another
// key, and the names of these rules.
func (e *Engine) lost(next *ratelimit.Set) (bans int, names []string, err error) {
	set := e.limiter.Set()
	gone := map[string]int{}
	for _, r := range set.Rules() {
		if n, err := next.Named(r.Name); err != nil || !keyvalue.Equal(n.Key, r.Key) {
			gone[r.Name] = 0
		}
	}
	if len(gone) == 0 {
		return 0, nil, nil
	}
	for r, err := range e.bans.All() {
		if err != nil {
			return 0, nil, err
		}
		if _, ok := gone[r.Rule]; ok {
			gone[r.Rule]++
			bans++
		}
	}
	for name, n := range gone {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return bans, names, nil
}

// wouldDrop is the error of a reload that would drop bans.
func wouldDrop(bans int, names []string) error {
	return apierror.New(api.Conflict, "the new rules would drop %s, under rules that they remove or that get another key: %s; "+
		"the rules in force stay. End the bans first (UNBANALL RULE name), or reload with --drop-bans (lately reload) or drop_bans (HTTP)", number(bans, "ban"), strings.Join(names, ", "))
}

// number returns n and what it counts: 1 ban, 2 bans.
func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
