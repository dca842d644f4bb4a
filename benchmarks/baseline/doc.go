// Package baseline has the sliding windows that the product grew from, written
// again from descriptions of them, as rows to measure against: a synchronized
// ring that clears ahead (O1), a ring whose first writer in a slot clears (O2),
// a time wheel with a lock a slot and the variants that its author weighs (O3),
// a window with a running total (O4) and one of absolute periods (O5).
//
// Where a design loses counts, so does it here: that is measured, not
// repaired. Single-threaded they are all right, and their tests hold them to
// that. Nothing here is for use.
package baseline

import "time"

// slotAt returns the number of the slot of that width that it is now.
func slotAt(width time.Duration) int64 { return time.Now().UnixNano() / int64(width) }

// at returns where a slot lies in a ring of n.
func at(slot int64, n int) int { return int(slot % int64(n)) }
