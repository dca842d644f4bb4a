// Package drive is what the benchmarks of windows and of keyed tables share:
// running an operation on a number of goroutines, noticing when the machine was
// busy with something else, and weighing what a subject keeps on the heap.
package drive
