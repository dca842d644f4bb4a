// Package heap has the first item in an order, while items come, change and go, and the first
// n of many. Unlike container/heap it boxes no item, and keeps no item that was removed.
package heap

// A Heap is a binary heap. Make one with [New]. Each change takes a number of comparisons
// that is logarithmic in the number of items; only Push allocates. It is not safe for
// concurrent use.
type Heap[T any] struct {
	items []T
	less  func(a, b T) bool
	moved func(item T, place int)
}

// New returns an empty Heap in the order of less. If moved is not nil, it is called with each
// new place of an item, and with -1 when the item has been removed: [Heap.Fix] and
// [Heap.Remove] are given the place.
func New[T any](less func(a, b T) bool, moved func(item T, place int)) Heap[T] {
	if moved == nil {
		moved = func(T, int) {}
	}
	return Heap[T]{less: less, moved: moved}
}

// First returns the first item in order. ok is false if there is none.
func (h *Heap[T]) First() (item T, ok bool) {
	if len(h.items) == 0 {
		return item, false
	}
	return h.items[0], true
}

// Items returns the items by their places. They must not be changed, and are valid until the
// heap changes.
func (h *Heap[T]) Items() []T { return h.items }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	h.Fix(len(h.items) - 1)
}

// Remove removes the item at that place, and returns it. The first item is at 0.
func (h *Heap[T]) Remove(place int) T {
	item, last := h.items[place], len(h.items)-1
	h.items[place] = h.items[last]
	clear(h.items[last:])
	if h.items = h.items[:last]; place < last {
		h.Fix(place)
	}
	h.moved(item, -1)
	return item
}

// Fix restores the order after the item at that place has changed.
func (h *Heap[T]) Fix(place int) {
	item := h.items[place]
	for place > 0 && h.less(item, h.items[(place-1)/2]) {
		h.put(place, h.items[(place-1)/2])
		place = (place - 1) / 2
	}
	for child := 2*place + 1; child < len(h.items); child = 2*place + 1 {
		if child+1 < len(h.items) && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], item) {
			break
		}
		h.put(place, h.items[child])
		place = child
	}
	h.put(place, item)
}

func (h *Heap[T]) put(place int, item T) {
	h.items[place] = item
	h.moved(item, place)
}
