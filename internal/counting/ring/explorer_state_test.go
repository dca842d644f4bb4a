//go:build explore

package ring

import "math/bits"

// A cell is an atomic that steps are about. Its name is the same in all orders
// that lead to the same state, which its address is not.
type cell struct {
	at      any
	name    uint64
	changes uint64 // how often a pointer was changed
	vague   bool   // the name may be that of another in another order
}

// A thing is the target of a pointer. Its name is the cell and the number of
// the change that stored it.
type thing struct {
	pointer any
	name    uint64
}

// survey names all things that exist before the actors begin.
func (x *explorer) survey() {
	x.cells, x.things = x.cells[:0], x.things[:0]
	x.surveys = true
	step = func(at any, _ kind) { x.cellOf(at) }
	x.Newest()
	x.Sum(9, 10)
	for i := 0; i < len(x.cells); i++ { // a thing's cells come to their end
		x.nameThing(i)
	}
	x.surveys = false
}

// isFixed reports whether no actor has changed a cell, in any order so far.
func (x *explorer) isFixed(at any) bool {
	if at == any(&x.history) {
		return false
	}
	for i := range x.cells {
		if c := &x.cells[i]; c.at == at {
			return !c.vague && !x.changing[c.name]
		}
	}
	return false
}

// cellOf returns the index of a cell. An unknown one is named by the actor that was there before it, which may differ
// between orders; then equal states count as two, which costs time and misses nothing.
func (x *explorer) cellOf(at any) int {
	for i := range x.cells {
		if x.cells[i].at == at {
			return i
		}
	}
	x.cells = append(x.cells, cell{at: at, name: uint64(len(x.cells)), vague: !x.surveys})
	return len(x.cells) - 1
}

// addCell records the cell at that place in a thing.
func (x *explorer) addCell(at any, thing uint64, place int) {
	n := len(x.cells)
	if i := x.cellOf(at); i == n {
		x.cells[i].name, x.cells[i].vague = mix(thing, uint64(place)), false
	}
}

// changed reports whether a cell has another value than before. If it is a pointer, its new target has a name after that.
func (x *explorer) changed(i int, before uint64) bool {
	switch at := x.cells[i].at.(type) {
	case *atomicPointer[generation], *atomicPointer[striping]:
		return x.nameThing(i)
	default:
		return x.value(at) != before
	}
}

// nameThing names what a cell points to, and reports whether it had no name.
func (x *explorer) nameThing(i int) bool {
	c := &x.cells[i]
	name := mix(c.name, c.changes+1)
	switch at := c.at.(type) {
	case *atomicPointer[generation]:
		e := at.v.Load()
		if e == nil || x.nameOf(e) != 0 {
			return false
		}
		c.changes++
		x.things = append(x.things, thing{e, name})
		x.addCell(&e.newest, name, 0)
		for i := range e.words {
			x.addCell(&e.words[i], name, i+1)
		}
	case *atomicPointer[striping]:
		s := at.v.Load()
		if s == nil || x.nameOf(s) != 0 {
			return false
		}
		c.changes++
		x.things = append(x.things, thing{s, name})
		x.addCell(&s.assignment, name, 0)
		for i := range limit() {
			x.addCell(&s.stripes[i].gen, name, i+1)
		}
	default:
		return false
	}
	return true
}

// nameOf returns the name of a thing, 0 if it has none.
func (x *explorer) nameOf(pointer any) uint64 {
	for i := range x.things {
		if x.things[i].pointer == pointer {
			return x.things[i].name
		}
	}
	return 0
}

// value returns what a cell holds: of a pointer, the name of what it points to;
// of the history, what a read takes along.
func (x *explorer) value(at any) uint64 {
	switch at := at.(type) {
	case *atomicUint64:
		return at.v.Load()
	case *atomicInt64:
		return uint64(at.v.Load())
	case *atomicPointer[generation]:
		if e := at.v.Load(); e != nil {
			return x.nameOf(e)
		}
		return 1
	case *atomicPointer[striping]:
		if s := at.v.Load(); s != nil {
			return x.nameOf(s)
		}
		return 1
	case *byte:
		return x.finished
	}
	panic("a step about something else")
}

// state returns a hash of the values that all actors have loaded, and of the
// memory, independent of their order.
func (x *explorer) state() uint64 {
	sum := uint64(0)
	for i := range x.cells {
		sum += mix(x.cells[i].name, x.value(x.cells[i].at))
	}
	h := mix(mix(mix(sum, x.begun), x.finished), x.refused)
	for _, a := range x.actors {
		h = mix(h, a.found)
		if a.running {
			h++
		}
	}
	return h
}

// mix adds v to the hash h: the multiplication of wyhash, and a finish.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, v^0xd6e8feb86659fd93)
	return bits.RotateLeft64(hi^lo+h, 29) * 0x94d049bb133111eb
}
