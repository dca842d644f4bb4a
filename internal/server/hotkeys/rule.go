package hotkeys

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// Rules are hot rules with their detectors.
type Rules []*hotRule

// A hotRule is a hot rule with a detector of its own, so that a rule which does not
// change keeps its counts when others change.
type hotRule struct {
	hotkey.Rule
	fields   int  // of its key
	answers  bool // its condition looks at the answer
	detector *hotkey.Detector
	keys     *hotkey.RuleDetector // of detector
	use      *use
}

// named returns the rule of that name, or an error.
func (all Rules) named(name string) (*hotRule, error) {
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	return nil, apierror.Unknown(api.NoRule, "hot rule", name, names)
}

// prepare returns the rule that is the same as next, or a new one under budget.
func (all Rules) prepare(next *hotkey.Rule, budget int64) (*hotRule, error) {
	for _, r := range all {
		if reflect.DeepEqual(r.Rule, *next) {
			return r, nil
		}
	}
	d, err := hotkey.NewDetector([]hotkey.Rule{*next}, hotkey.DetectorConfig{Budget: budget})
	if err != nil {
		return nil, err
	}
	counted, _ := d.Rule(next.Name) // its only one
	r := &hotRule{Rule: *next, fields: len(next.Key.Fields()), answers: when.NeedsAnswer(&next.When), detector: d, keys: counted}
	if was, err := all.named(next.Name); err == nil {
		r.use = was.use
	} else {
		r.use = newUse()
	}
	return r, nil
}

// entry returns the entry of a key that became hot. A key with a value that is cut has
// another ID than the detector knows.
func (r *hotRule) entry(edge *hotkey.Edge) entry {
	e := entry{Rule: r.Name, ID: edge.Key, of: r, Since: edge.Time, Until: edge.Until, Hold: r.hold(), Lo: edge.Lo, Hi: knownOr0(edge.Hi)}
	shown, cut := shown(keyvalue.All(r.Key, edge.Key))
	e.Key = api.KeyOf(shown...)
	if cut {
		id, _ := keyvalue.Rejoin(r.Key, nil, shown...) // as many values as the key has, none empty
		e.ID = string(id)
	}
	return e
}

// count returns the bounds of the number of events of a key in the span of r. hi is 0 if it is
// unknown.
func (r *hotRule) count(now time.Time, key string) (lo, hi uint64) {
	count, _ := r.keys.HotAt(now, key)
	return count.Lo, knownOr0(count.Hi)
}

// knownOr0 returns hi, or 0 if a detector does not know it.
func knownOr0(hi uint64) uint64 {
	if hi == math.MaxUint64 {
		return 0
	}
	return hi
}

// hold returns how long a key stays hot.
func (r *hotRule) hold() time.Duration { return cmp.Or(r.Hold, r.Span) }

// isCut reports whether a value of e was cut, so that the detector does not know its ID.
func (e *entry) isCut() bool {
	return slices.ContainsFunc(e.Key.Values(), func(v string) bool { return len(v) > keys.Max })
}

// shown cuts the values of more than keys.Max bytes in place, so that clients cannot fill
// memory with hot keys. It reports whether there are any.
func shown(values []string) (_ []string, cut bool) {
	for i, v := range values {
		if len(v) <= keys.Max {
			continue
		}
		end := keys.Max
		for end > keys.Max-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		values[i] = fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", v[:end], len(v), sha256.Sum256([]byte(v)))
		cut = true
	}
	return values, cut
}

// rate returns the events a second of a key that has n in the span of r.
func (r *hotRule) rate(n uint64) float64 { return float64(n) / r.Span.Seconds() }

// ignore has a key ignored that was ignored by hand, unless the rules file says something else about it.
func (r *hotRule) ignore(values []string) {
	if key, err := keyvalue.Rejoin(r.Key, nil, values...); err == nil {
		_ = r.keys.SetNever(string(key), true)
	}
}
