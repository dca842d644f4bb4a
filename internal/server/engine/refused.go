package engine

import (
	"bytes"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// refusedBudget bounds the memory of the counts of refused keys, in bytes: some tens of
// thousands of keys. Then the keys that were refused least are evicted.
const refusedBudget = 8 << 20

// maxRefusedSpan is the longest span over which refused keys are counted.
const maxRefusedSpan = time.Hour

// newRefused returns the table that counts refused events by rule and key.
func newRefused() (*window.Table, error) {
	return window.NewTable(window.TableConfig{Budget: refusedBudget, Compare: true},
		window.Window{Span: time.Minute, Slot: time.Minute / counterSlots},
		window.Window{Span: maxRefusedSpan, Slot: maxRefusedSpan / counterSlots})
}

// countRefused counts a refusal of s.key, a key of r, by r. ev is nil if there is only a
// key. The table's key is the rule's name, a NUL byte, the shape of the rule's key and the
// key, since a reload may change the rule's key.
func (s *Session) countRefused(t time.Time, r *ratelimit.Rule, d *ratelimit.Decision, ev *match.Event) {
	n := len(s.key)
	s.key = appendRefusedRule(s.key, r)
	s.key = append(s.key, s.key[:n]...)
	s.e.refused.AddAt(t, view(s.key[n:]), 1)
	s.e.recent.add(t, s.key[n:], d, ev)
	s.key = s.key[:n]
}

// appendRefusedRule appends what a key of the table has before the rule's key.
func appendRefusedRule(dst []byte, r *ratelimit.Rule) []byte {
	return r.Key.AppendShape(append(append(dst, r.Name...), 0))
}

// countRefusedEvent counts a refusal of ev, with the key that the deciding rule takes
// from it.
func (s *Session) countRefusedEvent(set *ratelimit.Set, t time.Time, ev *match.Event, d *ratelimit.Decision) {
	r, err := set.Named(d.Rule)
	if err != nil {
		return
	}
	var ok bool
	if s.key, ok = r.Key.Append(s.key[:0], ev); ok {
		s.countRefused(t, r, d, ev)
	}
}

// Refused returns the n keys that were refused most, by limits and by bans, over a span
// that ends now, 1 s to 1 h, the most refused first. Keys of rules that were removed or
// have got another key are left out. It scans the table. Errors are of *Error.
func (e *Engine) Refused(n int, span time.Duration) ([]api.RefusedKey, error) {
	if n < 1 || n > maxTop {
		return nil, errorf(api.BadArg, "n: %d: must be 1 to %d", n, maxTop)
	}
	if span < time.Second || span > maxRefusedSpan {
		return nil, errorf(api.BadArg, "span: %v: must be 1s to %v", span, maxRefusedSpan)
	}
	if err := e.scans.begin(); err != nil {
		return nil, err
	}
	defer e.scans.end()
	now := e.Now()
	top, err := e.refused.TopAt(now, n, span)
	if err != nil {
		return nil, errorf(api.BadArg, "span: %v", err)
	}
	l := e.limiter
	list := make([]api.RefusedKey, 0, len(top))
	for _, k := range top {
		rule, key, ok := refusedKey(l.Set(), []byte(k.Key))
		if !ok {
			continue
		}
		parts := rule.Key.Values(string(key))
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

// refusedKey splits a key of the table into its rule and the rule's key.
func refusedKey(set *ratelimit.Set, text []byte) (*ratelimit.Rule, []byte, bool) {
	name, rest, _ := bytes.Cut(text, []byte{0})
	r, err := set.Named(string(name))
	if err != nil {
		return nil, nil, false
	}
	key, ok := bytes.CutPrefix(rest, r.Key.AppendShape(nil))
	return r, key, ok
}
