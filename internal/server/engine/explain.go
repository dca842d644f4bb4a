package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// maxExplained is how many keys an explanation has.
const maxExplained = 100

// Explain returns which keys that have all of these values, such as an address, a user or a
// path, were refused lately, and why. Keys of rules that were removed or have got another key are left
// out, and so are keys of more than some 300 bytes. It scans the recent refusals. Errors are
// of *Error.
func (e *Engine) Explain(all ...string) (x api.Explanation, err error) {
	if len(all) == 0 || len(all) > match.MaxKeyFields {
		return x, errorf(api.BadArg, "key: %d values: must be 1 to %d", len(all), match.MaxKeyFields)
	}
	for _, v := range all {
		if v == "" || len(v) > MaxKey {
			return x, errorf(api.BadArg, "key: %d bytes: must be 1 to %d", len(v), MaxKey)
		}
	}
	if err := e.scans.begin(); err != nil {
		return x, err
	}
	defer e.scans.end()
	set := e.limiter.Set()
	var found []refusalRecord
	evicted := e.recent.each(func(r *refusalRecord) {
		rule, key, ok := refusedKey(set, r.text[:r.key])
		if ok && !slices.ContainsFunc(all, func(v string) bool { return !rule.Key.Has(key, v) }) {
			found = append(found, *r)
		}
	})
	slices.SortFunc(found, func(a, b refusalRecord) int { return cmp.Compare(b.last, a.last) })
	x = api.Explanation{Values: all, Since: e.started.UTC(), Refusals: []api.Refusal{}}
	if evicted > 0 {
		x.Since = moment(evicted)
	}
	for i := range found[:min(len(found), maxExplained)] {
		refusal, err := e.refusal(set, &found[i])
		if err != nil {
			return x, err
		}
		x.Refusals = append(x.Refusals, refusal)
	}
	return x, nil
}

// refusal returns a record as the API has it, with what the rule decides now.
func (e *Engine) refusal(set *ratelimit.Set, r *refusalRecord) (api.Refusal, error) {
	rule, key, _ := refusedKey(set, r.text[:r.key])
	parts := rule.Key.Values(string(key))
	d := ratelimit.Decision{Rule: rule.Name, Limit: r.limit, Remaining: r.remaining, RetryAfter: r.retry, ResetAfter: r.reset}
	if r.bannedUntil != 0 {
		d.BannedUntil = moment(r.bannedUntil)
	}
	out := api.Refusal{
		Rule: rule.Name, Sentence: rules.LimitSentence(rule), Fields: rule.Key.Fields(), Key: api.KeyOf(parts...),
		Count: r.count, First: moment(r.first), Last: moment(r.last), Example: api.RefusedEvent{Time: moment(r.at), Decision: DecisionOf(&d)},
	}
	out.Example.Method, out.Example.Host, out.Example.Path = r.texts()
	var now api.KeyReport
	if err := e.inspectRule(rule, parts, &now); err != nil {
		return out, err
	}
	if len(now.Rules) > 0 {
		out.Now = &now.Rules[0].Decision
	}
	if len(now.Bans) > 0 {
		out.Ban = &now.Bans[0]
	}
	return out, nil
}

func moment(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
