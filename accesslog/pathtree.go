package accesslog

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A pathNode is a node of the tree that the paths of a spec make, key by key.
//
// As a dot in a path may also be part of a key, a path of n keys can be read in
// 1<<(n-1) ways: at each of its n-1 dots either an object is entered or the key
// goes on. Bit i of a route says that an object is entered at the dot after
// key i. What is found on a route is kept in the slot of that number, so that
// one pass over the line finds all of them and the preferred one can be chosen
// at its end, whatever the order in the line.
type pathNode struct {
	depth int // keys from the root
	kids  []*pathNode
	key   string // from the parent
	wants []int  // that end here
	below []int  // that end further down
	steps []pathStep
	sizes uint64 // bit n: a step has a key of n bytes; bit 63: or of more
}

// A pathStep leads down by one key of the line, which may be several of the
// path.
type pathStep struct {
	key string
	to  *pathNode
}

// newPathTree returns the tree of s's wants and gives them their slots. It is
// an error when one key of a line would lead to two nodes.
func newPathTree(s *spec) (*pathNode, error) {
	root := &pathNode{}
	for i := range s.wants {
		w := &s.wants[i]
		n := root
		for _, key := range w.path {
			n.below = append(n.below, i)
			n = n.kid(key)
		}
		n.wants = append(n.wants, i)
		w.slot, w.order = s.slots, routeOrder(len(w.path)-1)
		s.slots += len(w.order)
	}
	return root, root.finish()
}

// routeOrder returns the routes of a path with that many dots: the one with
// the longest first key first, and so on along the path.
func routeOrder(dots int) []uint8 {
	order := make([]uint8, 1<<dots)
	for i := range order {
		order[i] = uint8(i)
	}
	slices.SortFunc(order, func(a, b uint8) int { return int(bits.Reverse8(a)) - int(bits.Reverse8(b)) })
	return order
}

func (n *pathNode) kid(key string) *pathNode {
	for _, k := range n.kids {
		if k.key == key {
			return k
		}
	}
	k := &pathNode{depth: n.depth + 1, key: key}
	n.kids = append(n.kids, k)
	return k
}

// finish fills in the steps of n and of all below it.
func (n *pathNode) finish() error {
	if err := n.addSteps(n, nil); err != nil {
		return err
	}
	for _, k := range n.kids {
		if err := k.finish(); err != nil {
			return err
		}
	}
	return nil
}

func (n *pathNode) addSteps(from *pathNode, keys []string) error {
	for _, k := range from.kids {
		keys := append(slices.Clip(keys), k.key)
		key := strings.Join(keys, ".")
		if n.step([]byte(key)) != nil {
			return fmt.Errorf(`the key %q is written in two ways; write its dots alike in all paths, as '.' or as '\.'`, key)
		}
		n.steps = append(n.steps, pathStep{key, k})
		n.sizes |= 1 << min(len(key), 63)
		if err := n.addSteps(k, keys); err != nil {
			return err
		}
	}
	return nil
}

// step returns where key leads, nil when nowhere.
func (n *pathNode) step(key []byte) *pathNode {
	if n.sizes&(1<<min(len(key), 63)) == 0 {
		return nil
	}
	for i := range n.steps {
		if s := &n.steps[i]; s.key == string(key) {
			return s.to
		}
	}
	return nil
}
