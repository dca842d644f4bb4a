package resp

import "errors"

// A Budget lends the memory by which the buffers of Readers and Writers outgrow their
// first sizes. It is used by several goroutines at once.
type Budget interface {
	// Take takes n bytes, or returns false if there are not so many left.
	Take(n int) bool

	// Give gives n bytes back.
	Give(n int)

	// Scarce reports whether so little is left that nobody should take what
	// would only make it faster.
	Scarce() bool
}

// ErrBudget is the error of a [Reader] whose next command, or of a [Writer] whose next
// reply, needs more memory than the [Budget] has left.
var ErrBudget = errors.New("resp: no memory is left for requests and replies of this size")

// An account is what one buffer has taken from a Budget. Without a Budget it pays
// nothing.
type account struct {
	budget Budget
	taken  int
}

// pay makes n what is taken, and reports whether it could.
func (a *account) pay(n int) bool {
	switch {
	case a.budget == nil || n == a.taken:
		return true
	case n > a.taken && !a.budget.Take(n-a.taken):
		return false
	case n < a.taken:
		a.budget.Give(a.taken - n)
	}
	a.taken = n
	return true
}

// scarce reports whether nothing should be taken without need.
func (a *account) scarce() bool { return a.budget != nil && a.budget.Scarce() }
