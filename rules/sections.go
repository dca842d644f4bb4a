package rules

import (
	"errors"
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

var (
	fileKeys    = []string{"version: 1", "client", "fields", "counters", "limits", "bans", "hot", "allow"}
	clientKeys  = []string{"ipv4", "ipv6"}
	counterKeys = []string{"key: client", "spans: [1s, 1m, 1h, 24h]", "when"}
	hotKeys     = []string{"name: product", "key: path", "when", "threshold: 500 per 2s", "hold", "exact", "always", "never", "cache"}
)

// readDocuments reads and compiles all documents. After a mistake, the result is of no use.
func (r *reader) readDocuments() *File {
	for i := range r.docs {
		d := &r.docs[i]
		r.file = d.file
		d.sections = r.Mapping(d.root, "file", fileKeys)
		yamlfile.One(&r.Reader, d.sections["version"], "version", yamlfile.OneOf("1"))
		maps.DeleteFunc(d.sections, func(_ string, n ast.Node) bool { return n.Type() == ast.NullType }) // sections that are left empty
	}
	r.readClients()
	for n := range r.sections("fields") {
		r.readFields(n)
	}
	f := &File{Fold: r.fold}
	for n := range r.sections("counters") {
		f.Counters = append(f.Counters, r.readCounters(n)...)
	}
	for n := range r.sections("allow") {
		f.Allow.add(r.readAllow(n))
	}
	limits, texts := readRules(r, "limits", r.readLimit)
	bans, banTexts := readRules(r, "bans", r.readBanRule)
	hot, hotTexts := readRules(r, "hot", r.readHot)
	var err error
	f.Limits, err = ratelimit.NewSet(ratelimit.SetConfig{Allow: f.Allow.prefixes(), Fields: r.fields}, append(limits, bans...)...)
	r.failRules(err, append(texts, banTexts...))
	f.Hot = hot
	r.failRules(hotkey.Validate(hot...), hotTexts)
	return f
}

// readRules returns the rules in the sections of that name, with their texts.
func readRules[T any](r *reader, section string, read func(ast.Node) T) (rules []T, texts []ruleText) {
	for n := range r.sections(section) {
		for _, n := range r.section(n, section) {
			texts = append(texts, r.readText(n, func(n ast.Node) { rules = append(rules, read(n)) }))
		}
	}
	return rules, texts
}

// readClients reads how clients become keys.
func (r *reader) readClients() {
	var first place
	for n := range r.sections("client") {
		m, fold := r.Mapping(n, "client", clientKeys), match.Fold{}
		fold.IPv4, _ = yamlfile.One(&r.Reader, m["ipv4"], "ipv4", rulevalue.PrefixBits(32))
		fold.IPv6, _ = yamlfile.One(&r.Reader, m["ipv6"], "ipv6", rulevalue.PrefixBits(128))
		switch {
		case first == place{}:
			first, r.fold = r.placeOf(n), fold
		case fold != r.fold:
			r.Fail(n, "client: not as in %s: must be the same in all files, or in one of them", first.from(r.file))
		}
	}
}

const maxSpans = 16

func (r *reader) readCounters(n ast.Node) (counters []Counter) {
	pairs, _ := r.Pairs(n, "counters", `a mapping of names, such as "requests: {key: client, spans: [1m]}"`)
	for _, p := range pairs {
		m := r.Mapping(p.Value, "counter", counterKeys)
		c := Counter{Name: r.readName(p.At), Key: r.readKey(m["key"]), When: r.readWhen(m["when"])}
		c.Condition, _ = c.When.Compile() // readWhen has recorded mistakes value by value
		if r.AtMost(m["spans"], "spans", maxSpans) {
			for at, span := range yamlfile.Each(&r.Reader, m["spans"], "spans", rulevalue.Duration) {
				if slices.Contains(c.Spans, span) {
					r.Fail(at, "spans: %s twice: must be given once", rulevalue.FormatDuration(span))
				}
				c.Spans = append(c.Spans, span)
			}
		}
		counters = append(counters, c)
	}
	return counters
}

// readHot reads a rule of the section hot.
func (r *reader) readHot(n ast.Node) hotkey.Rule {
	m := r.Mapping(n, "hot rule", hotKeys)
	rule := hotkey.Rule{Name: r.readName(m["name"]), Key: r.readKey(m["key"]), When: r.readWhen(m["when"])}
	r.checkUnhashed(m["key"], "key", "programs that find hot keys would not know theirs", keyvalue.Fields(rule.Key)...)
	threshold, _ := yamlfile.One(&r.Reader, m["threshold"], "threshold", func(s string) (ratelimit.Limit, error) {
		l, form, err := rulevalue.AnyLimit(s)
		l, fixed := rulevalue.FixedSpan(l)
		if err == nil && (!fixed || form != rulevalue.PerSpan && form != rulevalue.PerPeriod) {
			err = errors.New("must be " + rulevalue.MustHave[rulevalue.PerSpan])
		}
		return l, err
	})
	rule.Threshold, rule.Span = threshold.N, threshold.Span
	rule.Hold, _ = yamlfile.One(&r.Reader, m["hold"], "hold", rulevalue.Duration)
	rule.Exact, _ = yamlfile.One(&r.Reader, m["exact"], "exact", yamlfile.Bool)
	rule.Always = r.readHotKeys(m["always"], "always", rule.Key)
	rule.Never = r.readHotKeys(m["never"], "never", rule.Key)
	rule.Cache = r.readCache(m["cache"])
	return rule
}
