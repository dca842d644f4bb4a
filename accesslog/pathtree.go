package accesslog

import "strings"

// A pathNode stands for an object of a line in which values are wanted.
//
// A dot in a path may also be part of a key, so a path of n keys can be read in
// 1<<(n-1) ways: at each of its dots an object begins or the key continues. A node has a
// step for the first key of each of these ways.
type pathNode struct {
	steps []pathStep
	sizes uint64 // bit n: a step has a key of n bytes; bit 63: or of more
}

// A pathStep is a key that may be in an object, and what it leads to.
type pathStep struct {
	key   string
	wants []int     // whose paths end here
	inner *pathNode // the object that paths continue in; nil if there are none
}

// newPathTree returns the tree of the paths of wants.
func newPathTree(wants []want) *pathNode {
	root := &pathNode{}
	for i := range wants {
		root.add(wants[i].path, i)
	}
	return root
}

// add adds a path from n on, to the want of that number.
func (n *pathNode) add(path []string, want int) {
	for keys := 1; keys <= len(path); keys++ {
		key := strings.Join(path[:keys], ".")
		step := n.step([]byte(key))
		if step == nil {
			n.steps = append(n.steps, pathStep{key: key})
			n.sizes |= 1 << min(len(key), 63)
			step = &n.steps[len(n.steps)-1]
		}
		if keys == len(path) {
			step.wants = append(step.wants, want)
			break
		}
		if step.inner == nil {
			step.inner = &pathNode{}
		}
		step.inner.add(path[keys:], want)
	}
}

// step returns the step of a key, nil if there is none.
func (n *pathNode) step(key []byte) *pathStep {
	if n.sizes&(1<<min(len(key), 63)) == 0 {
		return nil
	}
	for i := range n.steps {
		if s := &n.steps[i]; s.key == string(key) {
			return s
		}
	}
	return nil
}
