package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/refused"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// countRefused counts a refusal of s.key, a key of r, by r. ev is nil if there is only a
// key.
func (s *Session) countRefused(t time.Time, r *ratelimit.Rule, d *ratelimit.Decision, ev *match.Event) {
	n := len(s.key)
	s.key = refused.AppendRule(s.key, r)
	s.key = append(s.key, s.key[:n]...)
	s.e.refused.Add(t, s.key[n:], d, ev)
	s.key = s.key[:n]
}

// countRefusedEvent counts a refusal of ev, with the key that the deciding rule takes
// from it. If that lacks fields, they are set: such events are listed by (missing).
func (s *Session) countRefusedEvent(set *ratelimit.Set, t time.Time, ev *match.Event, d *ratelimit.Decision) {
	r, err := set.Named(d.Rule)
	if err != nil {
		return
	}
	if d.Missing != "" {
		for _, name := range r.Key.Fields() {
			if one, _, _ := strings.Cut(name, " | "); len(ev.GetNamed(name)) == 0 {
				ev.SetNamedString(one, intake.Missing)
			}
		}
	}
	var ok bool
	if s.key, ok = r.Key.Append(s.key[:0], ev); ok {
		s.countRefused(t, r, d, ev)
	}
}

// Top returns the n keys of a counter that f selects with the largest counts over a span that
// ends now, the largest first: how busy they were at most, and which rule of the counter's own key refused them most. span 0 means
// the counter's longest. It scans the counter's keys. The error is an [*apierror.Error].
func (e *Engine) Top(name string, n int, span time.Duration, f keys.Filter) ([]api.KeyCount, error) {
	c, err := e.counters.Named(name)
	if err != nil {
		return nil, err
	}
	top, span, err := c.Top(n, span, f)
	if err != nil || span > refused.MaxSpan {
		return top, err
	}
	now, set := e.Now(), e.limiter.Set()
	for _, r := range set.Rules() {
		if keyvalue.Equal(r.Key, c.Key) {
			e.addRefusals(now, span, r, top)
		}
	}
	return top, nil
}

// addRefusals adds to keys of r what it has refused in a span that ends at t, if no other rule has refused more.
func (e *Engine) addRefusals(t time.Time, span time.Duration, r *ratelimit.Rule, top []api.KeyCount) {
	var row []byte
	for i := range top {
		k := &top[i]
		var err error
		if row, err = r.Key.Join(refused.AppendRule(row[:0], r), k.Values()...); err != nil {
			continue // the key of this counter has values of its own
		}
		if n, err := e.refused.Counts().CountAt(t, string(row), span); err == nil && n.Estimate > k.Refused {
			k.Refused, k.RefusedBy = n.Estimate, r.Name
		}
	}
}

// Refused returns the n keys that were refused most, by limits and by bans, over a span
// that ends now, 1 s to 1 h, the most refused first. Keys of rules that were removed or
// have got another key are left out. It scans the table. Errors are of *apierror.Error.
func (e *Engine) Refused(n int, span time.Duration) ([]api.RefusedKey, error) {
	if span < time.Second || span > refused.MaxSpan {
		return nil, apierror.New(api.BadArg, "span: %v: must be 1s to %v", span, refused.MaxSpan)
	}
	if err := e.scans.Begin(); err != nil {
		return nil, err
	}
	defer e.scans.End()
	now := e.Now()
	top, err := e.refused.Counts().TopAt(now, n, span)
	if err != nil {
		return nil, apierror.New(api.BadArg, "span: %v", err)
	}
	l := e.limiter
	list := make([]api.RefusedKey, 0, len(top))
	for _, k := range top {
		rule, key, ok := refused.Split(l.Set(), []byte(k.Key))
		if !ok {
			continue
		}
		parts := keyvalue.All(rule.Key, string(key))
		r := api.RefusedKey{
			Rule: rule.Name, Key: api.KeyOf(parts...), Count: api.Count{Lo: k.Lo, Hi: k.Hi, Estimate: k.Estimate}, PerSecond: float64(k.Estimate) / span.Seconds(),
		}
		if b, held, err := l.Bans().Get(r.Rule, parts...); err == nil && held {
			r.BannedUntil = b.Until.UTC()
		}
		list = append(list, r)
	}
	return list, nil
}

// maxExplained is how many keys an explanation has.
const maxExplained = 100

// Explain returns which keys that have all of these values, such as an address, a user or a
// path, were refused lately, and why. An address also finds "proxy:" and that address, the client of
// requests whose trusted proxy did not name one. Keys of rules that were removed or have got another
// key are left out, and so are keys of more than some 300 bytes. It scans the recent refusals. Errors
// are of *apierror.Error.
func (e *Engine) Explain(all ...string) (x api.Explanation, err error) {
	if len(all) == 0 || len(all) > keyvalue.MaxFields {
		return x, apierror.New(api.BadArg, "key: %d values: must be 1 to %d", len(all), keyvalue.MaxFields)
	}
	for _, v := range all {
		if v == "" || len(v) > keys.Max {
			return x, apierror.New(api.BadArg, "key: %d bytes: must be 1 to %d", len(v), keys.Max)
		}
	}
	if err := e.scans.Begin(); err != nil {
		return x, err
	}
	defer e.scans.End()
	set, asked := e.limiter.Set(), e.askedValues(all)
	found, evicted := e.refusedWith(set, asked)
	x = api.Explanation{Since: e.started.UTC(), Refusals: []api.Refusal{}}
	for i := range asked {
		x.Values = append(x.Values, asked[i].shown())
	}
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

// refusedWith returns the records of keys that have all of these values, the newest first, and notes which keys have a value itself.
// It also returns when the newest key that was replaced was last refused.
func (e *Engine) refusedWith(set *ratelimit.Set, asked []askedValue) (found []refused.Record, evicted int64) {
	evicted = e.refused.Each(func(r *refused.Record) {
		rule, key, ok := refused.Split(set, r.Key())
		if ok && !slices.ContainsFunc(asked, func(v askedValue) bool { return !v.isIn(rule, key) }) {
			found = append(found, *r)
			for i := range asked {
				asked[i].named = asked[i].named || keyvalue.Has(rule.Key, key, asked[i].text)
			}
		}
	})
	slices.SortFunc(found, func(a, b refused.Record) int { return cmp.Compare(b.Last, a.Last) })
	return found, evicted
}

// An askedValue is a value of the keys to be explained, and its digest, if rules have hashed fields.
type askedValue struct {
	text, digest string
	named        bool // a key has the text itself
}

func (e *Engine) askedValues(all []string) (asked []askedValue) {
	in := e.intake()
	for _, v := range all {
		asked = append(asked, askedValue{text: v, digest: in.Digest(v)})
	}
	return asked
}

func (v *askedValue) isIn(r *ratelimit.Rule, key []byte) bool {
	return keyvalue.Has(r.Key, key, v.text) || keyvalue.Has(r.Key, key, bans.ProxyPrefix+v.text) || v.digest != "" && keyvalue.Has(r.Key, key, v.digest)
}

// shown returns the value for the answer. What may be the value of a hashed field is not shown.
func (v *askedValue) shown() string {
	if _, isAddr := address.Parse(v.text); v.named || isAddr || v.digest == "" || intake.IsDigest(v.text) {
		return v.text
	}
	return v.digest
}

// refusal returns a record as the API has it, with what the rule decides now.
func (e *Engine) refusal(set *ratelimit.Set, r *refused.Record) (api.Refusal, error) {
	rule, key, _ := refused.Split(set, r.Key())
	parts := keyvalue.All(rule.Key, string(key))
	out := api.Refusal{
		Rule: rule.Name, Sentence: sentence.Limit(rule), Fields: rule.Key.Fields(), Key: api.KeyOf(parts...),
		Count: r.Count, First: moment(r.First), Last: moment(r.Last), Example: api.RefusedEvent{Time: moment(r.At), Decision: DecisionOf(&r.Decision)},
	}
	out.Example.Method, out.Example.Host, out.Example.Path = r.Texts()
	if r.Decision.Missing != "" {
		return out, nil // such events have no key
	}
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
