// Package integer keeps whole numbers by key until a time: what INCREX of Redis 8.8 adds to.
//
// One call adds to the number of a key within bounds, so that it is a limit of a fixed window
// whose caller brings the limit along. A [Table] does not allocate for a call and has no
// goroutine. Its memory is bounded, and no key is evicted before it has ended.
package integer
