package hotkey

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/internal/counting/keytable"
)

// Top returns the n keys with the most events in the last span, by their lower bounds, the
// largest first. span must not exceed the rule's span; 0 means the rule's span. Keys that
// were evicted are not included, and neither are keys of more than 256 bytes, because only
// their digests are kept. If times are kept, a lower bound is at most the larger of
// 128 and T.
//
// It inspects all keys of the rule, and locks each for a moment.
func (r *RuleDetector) Top(n int, span time.Duration) ([]KeyCount, error) {
	return r.topAt(r.d.now(), n, span)
}

// TopAt returns the n keys with the most events in (t-span, t], as [RuleDetector.Top] does
// for now. Events after t count as events at t.
func (r *RuleDetector) TopAt(t time.Time, n int, span time.Duration) ([]KeyCount, error) {
	return r.topAt(keytable.Nanos(t, maxSpan), n, span)
}

func (r *RuleDetector) topAt(now int64, n int, span time.Duration) ([]KeyCount, error) {
	if n < 1 {
		return nil, fmt.Errorf("hotkey: top: %d keys: must be 1 or more", n)
	}
	table := r.table
	if span < 0 || span > table.rule.Span {
		return nil, fmt.Errorf("hotkey: top: span %v: must be 0 to %v, the span of rule %q", span, table.rule.Span, table.rule.Name)
	}
	window := int64(cmp.Or(span, table.rule.Span))
	top := heap.NewTop(n, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Lo, a.Lo), strings.Compare(a.Key, b.Key))
	})
	for key, rec := range table.All() {
		w := rec.Words()
		if rec.Flag() { // a digest
			continue
		}
		k, _ := table.keyCount(rec.Hash(), w, max(now, table.window.Newest(w[wordWindow:], table.blocks)), window)
		if last, _ := top.Last(); k.Lo > 0 && k.Lo >= last.Lo {
			k.Key = string(key)
			top.Add(k)
		}
	}
	return top.Items(), nil
}
