package heap

import "slices"

// A Top keeps the first n of all added items, in an order. To add m items takes m
// comparisons, and a sort for every n that are among the first so far. It is not safe for
// concurrent use.
type Top[T any] struct {
	n       int
	compare func(a, b T) int
	items   []T
	full    bool // items[n-1] is the last of the first n so far
}

// NewTop returns a Top of n items, 1 or more, in the order of compare.
func NewTop[T any](n int, compare func(a, b T) int) Top[T] {
	return Top[T]{n: n, compare: compare}
}

// Last returns the last of the first n items so far. ok is false until
// enough were added. Items behind it need not be added.
func (t *Top[T]) Last() (item T, ok bool) {
	if !t.full {
		return item, false
	}
	return t.items[t.n-1], true
}

// Add adds an item.
func (t *Top[T]) Add(item T) {
	if t.full && t.compare(item, t.items[t.n-1]) > 0 {
		return
	}
	if t.items = append(t.items, item); len(t.items)/2-32 >= t.n {
		t.Items()
		t.full = true
	}
}

// Items returns the first n items in order, or all if there are fewer. They are valid until
// the next Add.
func (t *Top[T]) Items() []T {
	slices.SortFunc(t.items, t.compare)
	t.items = t.items[:min(t.n, len(t.items))]
	return t.items
}
