// Package hotkeys measures what an event costs where the hot keys among others are
// to be found: the detector of ours beside HeavyKeeper of go-kratos/aegis. The
// module in ./sliding adds the sliding HeavyKeeper of keilerkonzept/topk.
//
// The rows get the same keys in the same order, and do not do the same. The peers
// keep k names and estimates of their counts; they have no clock and no lock, so their
// user has to say when time passes, and to lock them if there are several goroutines,
// as the rows do on more than one core, and one row of aegis always. Ours keep all keys, read the clock, may be used
// by all goroutines, and report each key that reaches a threshold in the span.
package hotkeys
