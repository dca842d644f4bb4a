package ratelimit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unsafe"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/match"
)

// A Set is a list of compiled rules, under which a [Limiter] judges events. It
// holds no counts. A Set is immutable and safe for concurrent use.
type Set struct {
	rules []*Rule
	conds [match.Answer + 1][]match.Condition // of each rule, for each part of an event
	allow address.Set
	names map[string]int // the number of each rule
	from  []match.Source

	// distinct is for each rule the field whose distinct values its ban counts.
	distinct []match.Key

	// varying is which limit of each rule has AtMost, or -1, and by is the field of its
	// LimitBy, as a key.
	varying []int
	by      []match.Key
	reads   []bool // the rules that take more from an event than their key

	required [][]requirement // of each rule

	answers []bool   // the rules that count answers
	clients []int    // at which place in its key each rule has the client, or -1
	fields  []string // what the key has there, such as "user | client"
	keys    []int    // for each rule, the first of the rules in a row that have its key
	forms   []uint32 // of the keys of each rule, for tickets
}

// SetConfig configures a [Set] apart from its rules. Its zero value adds
// nothing.
type SetConfig struct {
	// Allow lists clients, by address or prefix, that are never limited,
	// never banned and never counted: one's own proxies and monitors.
	Allow []netip.Prefix

	// Fields declares the sources in requests of fields that are not well known, for
	// middleware.
	Fields []match.Source
}

// maxRules is the largest number of rules in a Set.
const maxRules = 1024

// NewSet validates and compiles at most 1,024 rules. Reports list them in this order. The error has all that
// is wrong with them: the rule, the field, its value and what it must be.
func NewSet(c SetConfig, rules ...Rule) (*Set, error) {
	s := &Set{allow: address.NewSet(c.Allow...), names: make(map[string]int, len(rules)), from: slices.Clone(c.Fields)}
	if err := checkSources(c.Fields); err != nil {
		return nil, err
	}
	var wrong invalid.Fields
	if len(rules) > maxRules {
		wrong.Check(false, "rules", len(rules), "must be at most %d", maxRules)
		return nil, wrong.Of(maxRules, rules[maxRules].Name)
	}
	s.rules = make([]*Rule, len(rules)) // of no greater capacity: callers may append to Rules
	for i := range rules {
		s.rules[i] = rules[i].clone()
	}
	for i := range s.rules {
		wrong = append(wrong, s.compile(i).Of(i, s.rules[i].Name)...)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	s.conds[match.Answer] = s.conds[match.Whole]
	return s, nil
}

// compile adds to s what follows from its i-th rule, and returns what is wrong with that.
func (s *Set) compile(i int) invalid.Fields {
	r := s.rules[i]
	wrong := r.validate()
	_, taken := s.names[r.Name]
	wrong.Check(!taken, "name", nil, "%q is taken by an earlier rule: must be a name of its own", r.Name)
	s.names[r.Name] = i
	client, field := keyvalue.ClientIndex(r.Key), ""
	if client >= 0 {
		field = r.Key.Fields()[client]
	}
	s.clients, s.fields = append(s.clients, client), append(s.fields, field)
	s.forms = append(s.forms, formOf(&r.Key))
	s.required = append(s.required, requirements(&r.Key, s.from))
	if s.keys = append(s.keys, i); i > 0 && keyvalue.Equal(r.Key, s.rules[i-1].Key) {
		s.keys[i] = s.keys[i-1]
	}
	s.varying, s.by = append(s.varying, r.varying()), append(s.by, r.limitBy(&wrong))
	s.distinct = append(s.distinct, r.distinct(&wrong))
	s.reads = append(s.reads, r.LimitBy != nil || r.Ban != nil && r.Ban.Of == Distinct)
	cond, err := r.When.Compile()
	wrong.CheckNil(err, "when")
	answers, before := when.NeedsAnswer(&r.When), when.Request(&r.When)
	request, _ := before.Compile() // a part of what was compiled
	s.answers = append(s.answers, answers)
	wrong.Check(r.Algorithm != InFlight || !answers, "when", nil, "must have no field of the answer (status, size, duration) with algorithm in-flight, which counts requests that have no answer yet")
	s.conds[match.Whole] = append(s.conds[match.Whole], cond)
	s.conds[match.Request] = append(s.conds[match.Request], request)
	return wrong
}

// checkSources returns an error about a bad source, or two of one field.
func checkSources(sources []match.Source) error {
	for i := range sources {
		if err := intake.Validate(&sources[i]); err != nil {
			return fmt.Errorf("Fields: %w", err)
		}
		if slices.ContainsFunc(sources[:i], func(s match.Source) bool { return s.Field == sources[i].Field }) {
			return fmt.Errorf("Fields: field %q twice: must be given once", sources[i].Field)
		}
	}
	return nil
}

// lackedBy appends the numbers of the rules that count answers and need a field which ev lacks.
func (s *Set) lackedBy(dst []lack, ev *match.Event) []lack {
	lacks := func(name string) bool { return len(ev.GetNamed(name)) == 0 }
	for i, counts := range s.answers {
		if counts && (slices.ContainsFunc(s.rules[i].Key.Fields(), lacks) || slices.ContainsFunc(when.Needs(&s.rules[i].When), lacks)) {
			dst = append(dst, lack{rule: i})
		}
	}
	return dst
}

// Rules returns the rules, which must not be changed, in their order: that of [Outcome.Rule].
func (s *Set) Rules() []*Rule { return s.rules }

// Named returns the rule of that name, which must not be changed. The error is a *[RuleError] if
// the name is unknown. The cost is one map lookup; for an unknown name it compares all names.
func (s *Set) Named(name string) (*Rule, error) {
	i, ok := s.names[name]
	if !ok {
		return nil, s.noRule(name)
	}
	return s.rules[i], nil
}

// allowed reports whether the event's client is on the allow list.
func (s *Set) allowed(e *match.Event) bool { return s.allow.Contains(e.Get(match.Client)) }

// allowsKey reports whether the client in a key of the i-th rule is on the allow
// list: an address that is, or a prefix of which all addresses are.
func (s *Set) allowsKey(i int, key []byte) bool {
	if s.allow.IsEmpty() {
		return false
	}
	at, k := 0, &s.rules[i].Key
	for v := range k.Parts(key) {
		if at == s.clients[i] {
			return s.allowsValue(keyvalue.Client(s.fields[i], v))
		}
		at++
	}
	return false
}

func (s *Set) allowsValue(client []byte) bool {
	if s.allow.Contains(client) {
		return true
	}
	text := unsafe.String(unsafe.SliceData(client), len(client)) // only read
	if !strings.Contains(text, "/") {
		return false
	}
	p, err := netip.ParsePrefix(text)
	return err == nil && s.allow.ContainsPrefix(p)
}

// allows reports whether the client of a ban is on the allow list: an address that
// is, or a prefix of which all addresses are.
func (l *Limiter) allows(b *BanRecord) bool {
	s := l.Set()
	i, ok := s.names[b.Rule]
	if !ok {
		return false
	}
	at := s.clients[i]
	return at >= 0 && at < len(b.Key) && s.allowsValue(keyvalue.Client(s.fields[i], []byte(b.Key[at])))
}

// A RuleError reports an unknown name of a rule.
type RuleError struct {
	Name    string // the unknown name, at most its first 64 bytes
	Nearest string // the name in the Set that was probably meant, or ""

	message string
}

// Error names the unknown rule, and the rule that was probably meant or some
// existing rules.
func (e *RuleError) Error() string { return "ratelimit: " + e.message }

// noRule returns the error for a name that no rule of s has. It compares all names.
func (s *Set) noRule(name string) *RuleError {
	e := &RuleError{Name: strings.Clone(name[:min(len(name), 64)])}
	var rules []string
	for i := range s.rules {
		rules = append(rules, s.rules[i].Name)
	}
	e.message, e.Nearest = spelling.UnknownRule(e.Name, rules)
	return e
}

// ErrBadKey is the error for values that do not form a key of the rule. The full error names the
// bad value.
var ErrBadKey = errors.New("ratelimit: bad key")

// A keyError is an ErrBadKey.
type keyError struct {
	rule string
	err  error
}

func (e *keyError) Error() string { return fmt.Sprintf("ratelimit: rule %q: %v", e.rule, e.err) }

func (e *keyError) Unwrap() error { return e.err }

func (e *keyError) Is(target error) bool { return target == ErrBadKey }
