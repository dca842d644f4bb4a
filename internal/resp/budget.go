package resp

import "errors"

// A Budget bounds the growth of the buffers of Readers and Writers beyond their first
// sizes. Several goroutines use it at once.
type Budget interface {
	Take(n int) bool // takes n bytes, or returns false if fewer are left
	Give(n int)      // returns n bytes
	Scarce() bool    // so few are left that none should be taken only for speed
}

// ErrBudget is the error of a [Reader] whose next command, or of a [Writer] whose next
// reply, needs more memory than the [Budget] has left.
var ErrBudget = errors.New("resp: no memory is left for requests and replies of this size")

// An account counts the bytes that one buffer has taken from a Budget, which
// may be nil.
type account struct {
	budget Budget
	taken  int
}

// pay takes or returns bytes until n are taken, and reports whether that is possible.
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

// scarce is Budget.Scarce.
func (a *account) scarce() bool { return a.budget != nil && a.budget.Scarce() }
