// Package keys is the keys of the benchmarks of keyed tables and of limits, and
// the order in which they come.
package keys
