package follow

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxPast is how many finished files of a log are remembered, so that they are not read
	// again under another name.
	maxPast = 16

	// maxLinked is how many more are remembered since a symbolic link may name them again.
	maxLinked = 128
)

// recall makes g continue at the place where reading stopped, in g or in the file that it is
// a copy of.
func (t *tail) recall(g *generation) error {
	best, head := other, g.firstBytes()
	var found place
	known := slices.Clone(t.past)
	for _, g := range t.gens {
		known = append(known, g.saved())
	}
	for _, p := range known {
		if l := p.like(g.info, head, g.unpacked != nil); l > other && l >= best {
			best, found = l, p
		}
	}
	if best == other {
		return nil
	}
	return g.continueAt(&found)
}

// keep remembers the place of a finished file.
func (t *tail) keep(p place) {
	t.remember(p)
	t.forget()
}

// remember adds a place to the read ones.
func (t *tail) remember(p place) {
	if p.Offset == 0 && p.Begun == 0 {
		return
	}
	t.past = slices.DeleteFunc(t.past, func(o place) bool {
		return o.Dev == p.Dev && o.Ino == p.Ino && o.HeadLen == p.HeadLen && o.HeadHash == p.HeadHash
	})
	t.past = append(t.past, p)
}

// forget removes the oldest places, except those of files that a link may name again. A rotated
// file is not looked for again: it is older than one that is remembered.
func (t *tail) forget() {
	excess := len(t.past) - maxPast
	t.past = slices.DeleteFunc(t.past, func(p place) bool {
		excess--
		return excess >= 0 && !p.inPlace()
	})
}

// inPlace reports whether the file of p still has the name under which it was read.
func (p *place) inPlace() bool {
	g, err := openGeneration(p.Path, time.Time{})
	if err != nil {
		return false
	}
	defer g.file.Close()
	return p.like(g.info, g.firstBytes(), g.unpacked != nil) > other
}

// requireMemory returns an error if the place of one more file cannot be remembered: that file
// must wait, or one that was read would be read again.
func (t *tail) requireMemory() error {
	if len(t.past) < maxPast+maxLinked {
		return nil
	}
	if t.forget(); len(t.past) < maxPast+maxLinked {
		return nil
	}
	return fmt.Errorf("the link has pointed to %d files that are still there: must be fewer, so that none is read twice: delete the oldest", len(t.past))
}
