// Package windows measures one window: adding to it and reading its sum, alone
// and with many goroutines, what it weighs, and how many adds it loses when
// slots change. The rows are the floors that the machine sets, the designs that
// the product grew from (package baseline), peers that can be had as modules,
// and ours.
//
// Not here: go-kratos/aegis, whose window is internal to it, as is that of
// failsafe-go; clipperhouse/rate and webriots/rate, which the public module
// proxy did not serve when this was written.
package windows
