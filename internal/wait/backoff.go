package wait

import "time"

// Backoff returns how long a caller waits after failures in a row, one or more: first after one,
// twice as long after each other, and at most most. If many callers may fail together, wait a
// random part of it.
func Backoff(first, most time.Duration, failures int) time.Duration {
	const shifts = 20 // no wait overflows
	return min(most, first<<min(failures-1, shifts))
}
