package ratelimit

import "github.com/lately-go/lately/internal/sketch"

// spare is memory that only some requests take: those that look, that are about
// many rules, or about keys without room. A request keeps it for the next.
type spare struct {
	words  []uint64
	probes []probe
	held   []sketch.Held
}

// spared returns r's spare memory.
func spared(r *request) *spare {
	if r.Scratch == nil {
		r.Scratch = new(spare)
	}
	return r.Scratch.(*spare)
}
