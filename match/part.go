package match

import "slices"

// A Part is the part of a request and its answer that an event describes. A rule whose condition
// uses the answer does not count a [Request], which has no answer yet: it refuses the request if
// its limit is already full, and counts the [Answer].
type Part uint8

const (
	Whole   Part = iota // a request and its answer, as in a line of a log; the default
	Request             // a request that has no answer yet
	Answer              // a request with its answer, which was judged as a Request before
)

// durationField is the name of the field that says how long a request took.
const durationField = "duration"

// HasAnswer reports whether e has a field of an answer: status, size or duration.
func (e *Event) HasAnswer() bool {
	return len(e.known[Status]) > 0 || len(e.known[Size]) > 0 || len(e.named(durationField)) > 0
}

// isOfAnswer reports whether the field of that name is known only when a request is answered.
func isOfAnswer(name string) bool {
	return name == Status.String() || name == Size.String() || name == durationField
}

// NeedsAnswer reports whether c uses a field of the answer: status, size or duration.
func (c *Condition) NeedsAnswer() bool {
	needs := func(c Condition) bool { return c.NeedsAnswer() }
	return c.ownAnswer() || slices.ContainsFunc(c.any, needs) || slices.ContainsFunc(c.not, needs)
}

// ownAnswer reports whether c itself has a condition on the answer.
func (c *Condition) ownAnswer() bool {
	return len(c.statuses) > 0 || slices.ContainsFunc(c.fields, func(f fieldPatterns) bool { return f.ref.isOfAnswer() })
}

// Request returns the condition that a request must meet so that c can hold for some
// answer to it.
func (c *Condition) Request() Condition {
	r, never := c.beforeAnswer(true)
	if never {
		r = Condition{some: true, not: []Condition{{}}}
	}
	return r
}

// beforeAnswer returns the condition of a request under which c holds for some answer, or for all, and whether there
// is none.
func (c *Condition) beforeAnswer(some bool) (r Condition, never bool) {
	if never = !some && c.ownAnswer(); never {
		return r, true
	}
	r = Condition{methods: c.methods, paths: c.paths, clients: c.clients}
	r.fields = slices.DeleteFunc(slices.Clone(c.fields), func(f fieldPatterns) bool { return f.ref.isOfAnswer() })
	always := false // one of the alternatives holds
	for i := range c.any {
		if one, never := c.any[i].beforeAnswer(some); !never {
			r.any, always = append(r.any, one), always || !one.some
		}
	}
	if never = len(c.any) > 0 && len(r.any) == 0; always {
		r.any = nil
	}
	for i := range c.not {
		if one, out := c.not[i].beforeAnswer(!some); !out {
			r.not, never = append(r.not, one), never || !one.some
		}
	}
	r.some = len(r.methods)+len(r.paths)+len(r.fields)+len(r.any)+len(r.not) > 0 || !r.clients.IsEmpty()
	return r, never
}

// isOfAnswer reports whether r reads a field of the answer.
func (r *ref) isOfAnswer() bool {
	for i := range r.either {
		if r.either[i].isOfAnswer() {
			return true
		}
	}
	return isOfAnswer(r.name)
}
