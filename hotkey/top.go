package hotkey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// Top returns the n keys with the most events in the last span under a rule, by their
// lower bounds, the busiest first. The span is at most that of the rule, and 0 means
// that of the rule. Keys that were evicted are not included, and neither are keys of
// more than 256 bytes, because only their digests are kept. Where times are kept, a
// lower bound is at most ExactThreshold or T, whichever is larger.
//
// It inspects all keys of the rule, and locks each for a moment.
func (d *Detector) Top(rule string, n int, span time.Duration) ([]KeyCount, error) {
	return d.topAt(d.now(), rule, n, span)
}

// TopAt returns the n keys with the most events in (t-span, t] under a rule, as
// [Detector.Top] does for now. Events after t are taken as those of t.
func (d *Detector) TopAt(t time.Time, rule string, n int, span time.Duration) ([]KeyCount, error) {
	return d.topAt(keytable.Nanos(t, MaxSpan), rule, n, span)
}

func (d *Detector) topAt(now int64, rule string, n int, span time.Duration) ([]KeyCount, error) {
	i, ok := d.set.index(rule)
	if !ok {
		return nil, fmt.Errorf("hotkey: top: unknown rule %q", rule)
	}
	if n < 1 {
		return nil, fmt.Errorf("hotkey: top: %d keys: must be 1 or more", n)
	}
	table := d.tables[i]
	if span < 0 || span > table.rule.Span {
		return nil, fmt.Errorf("hotkey: top: span %v: must be 0 to %v, the span of rule %q", span, table.rule.Span, rule)
	}
	window := int64(cmp.Or(span, table.rule.Span))
	var top []KeyCount
	least := uint64(1)
	for key, r := range table.All() {
		w := r.Words()
		if r.Flag() { // a digest
			continue
		}
		k, _ := table.keyCount(r.Hash(), w, max(now, table.window.Newest(w[wordWindow:], table.blocks)), window)
		if k.Lo < least {
			continue
		}
		k.Key = string(key)
		if top = append(top, k); len(top)/2 >= n {
			top = busiest(top, n)
			least = top[len(top)-1].Lo
		}
	}
	return busiest(top, n), nil
}

// busiest returns the n of keys with the largest lower bounds, in order.
func busiest(keys []KeyCount, n int) []KeyCount {
	slices.SortFunc(keys, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Lo, a.Lo), strings.Compare(a.Key, b.Key))
	})
	return keys[:min(n, len(keys))]
}
