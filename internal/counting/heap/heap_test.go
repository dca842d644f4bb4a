package heap_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/internal/test/randtest"
)

// An item stores its place, as in the users of heaps that move and remove items.
type item struct{ order, place int }

// TestAgainstSortedList adds, moves and removes items at random, and compares the heap with a list: the first is one of the
// least, and each item is at the place of its last notification.
func TestAgainstSortedList(t *testing.T) {
	rnd := randtest.New(t)
	var list []*item
	h := heap.New(func(a, b *item) bool { return a.order < b.order }, func(i *item, place int) { i.place = place })
	for step := range 20_000 {
		n := rnd.IntN(1 + len(list))
		switch op := rnd.IntN(10); {
		case op < 4 || len(list) == 0:
			i := &item{order: rnd.IntN(50), place: -2}
			list = append(list, i)
			h.Push(i)
		case n == len(list):
		case op < 7:
			list[n].order = rnd.IntN(50)
			h.Fix(list[n].place)
		default:
			place := 0
			if op < 9 {
				place = list[n].place
			}
			gone := h.Remove(place)
			if gone.place != -1 {
				t.Fatalf("step %d: an item that was removed has the place %d", step, gone.place)
			}
			list = slices.DeleteFunc(list, func(i *item) bool { return i == gone })
		}
		check(t, &h, list)
	}
}

func check(t *testing.T, h *heap.Heap[*item], list []*item) {
	t.Helper()
	items := h.Items()
	if len(items) != len(list) {
		t.Fatalf("%d items, want %d", len(items), len(list))
	}
	for _, i := range list {
		if i.place < 0 || i.place >= len(items) || items[i.place] != i {
			t.Fatalf("an item is not at its place, %d of %d", i.place, len(items))
		}
	}
	first, ok := h.First()
	if ok != (len(list) > 0) {
		t.Fatalf("there is a first of %d items: %v", len(list), ok)
	}
	if ok && first.order != slices.MinFunc(list, func(a, b *item) int { return cmp.Compare(a.order, b.order) }).order {
		t.Fatalf("the first is %d, which is not the least", first.order)
	}
}

// TestSorts takes the items of a heap without notifications, one after another.
func TestSorts(t *testing.T) {
	rnd := randtest.New(t)
	var want, got []int
	h := heap.New(func(a, b int) bool { return a < b }, nil)
	for range 1000 {
		h.Push(rnd.IntN(1000))
	}
	want = slices.Sorted(slices.Values(h.Items()))
	for range want {
		got = append(got, h.Remove(0))
	}
	if !slices.Equal(got, want) {
		t.Errorf("taken in the order %v, want %v", got, want)
	}
	if _, ok := h.First(); ok || len(h.Items()) != 0 {
		t.Errorf("%d items are left", len(h.Items()))
	}
}
