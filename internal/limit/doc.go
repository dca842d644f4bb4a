// Package limit counts one limit in a few words of a record, by one of eight
// algorithms. Words and times go in, words and counts come out; there is no clock
// and no lock. Times are int64 nanoseconds since 1970.
//
// A [Counter] is the layout and the arithmetic, made once for a limit; the words
// of a key are given to each call. Words that are all zero have nothing counted,
// whatever the time. Algorithms that keep the times themselves, and Sliding in any
// case, also take a [keytable.Blocks]: where a key's times, or the counts of its
// slots, go when there are more than [Inline].
//
// The order of calls for an event at time t is Advance, then the caller's
// judgement, then Reserve and Charge:
//
//	used := m.Advance(w, b, t)
//	allowed := cost <= n-min(used, n) && m.Reserve(w, b, cost)
//	if allowed {
//		m.Charge(w, b, t, cost)
//	}
//
// where n is [Counter.Most], or less for a limit that follows the traffic. The
// times given to Advance never go back for one record, and every other method
// that takes a t wants the time of the last Advance.
//
// To add an algorithm, write its window in a file of its own, and give it a name and
// a row in the table of methods.
package limit
