// Package sketch counts, in a fixed number of bytes, the keys that have no record in a
// table: for any number of keys it returns an upper bound of what each was charged
// with lately. An overcount may refuse a key that an exact count would have allowed,
// and never allows one that it would have refused.
//
// A [Window] is a Count-Min sketch (G. Cormode, S. Muthukrishnan, An improved
// data stream summary: the count-min sketch and its applications, Journal of
// Algorithms 55, 2005) with conservative update (C. Estan, G. Varghese, New
// directions in traffic measurement and accounting, SIGCOMM 2002). To make it
// slide, each of its counters is a cell of panes, an eighth of the span wide or
// less, and each cell ages by itself when it is met, so that nothing is ever
// swept. A pane counts until it has wholly left the window.
//
// # Why it never undercounts
//
// A key has one cell in each row, shared with whatever other keys are mixed to
// the same place. A cell keeps its newest panes, as many as it has places, and
// for each of them at least the charges of each of its keys in that pane:
//
//   - A charge in a pane that the cell knows, or a newer one, raises that
//     pane's count to at least the smallest count that the key's cells have for
//     the pane, and the cost. The smallest was at least the key's own count by
//     induction, so the raised one is at least the key's new count.
//   - A charge in a pane that the cell no longer knows changes nothing in it.
//   - Counts that do not fit stay at the largest that does, which is read as
//     endless.
//
// So for each pane the smallest count of those cells of a key that know the
// pane is at least the key's own, and the sum of the smallest over all panes
// that are not wholly outside the window at t is at least what was charged in
// (t-span, t]. A pane that no cell keeps any more, because all of them have
// seen times later than t, is taken for full.
//
// # How much it overcounts
//
// With three rows of m counters each, and f·m keys that come once in the span,
// all different, the count of a key that never came is on average this, and this
// share of such keys is refused, as the long form of TestNoise measures:
//
//	 f      N=1              N=10 and more
//	 0.4    0     0.2 %      0
//	 0.75   0     0.4 %      0.01
//	 1.5    0.03  3 %        0.04
//	 3      0.16  16 %       0.24  0 %
//	 6      0.49  49 %       1.1   0 %
//	12      0.73  73 %       3.7   0 %
//
// What counts is the charges, not the keys: a key that comes ten times weighs as
// much as ten, or less.
package sketch
