// Package ring has the arithmetic of slots and the lock-free ring that counts in
// them.
//
// Everything here is pure: times are int64 nanoseconds since 1970 that the caller
// passes, and there is no clock, no lock and no goroutine.
package ring
