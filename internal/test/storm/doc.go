// Package storm runs servers of Lately as users run them, processes of the built program, under
// faults that a seed draws, and judges what clients saw from outside.
//
// A seed draws a [Config]: servers, their settings, and versions of a rules file. [Run] starts the
// processes, with a redis-server and a proxy before it for each server if they have a store,
// sends traffic, and makes faults. Every call is recorded with the times before and after
// it, so that a verdict never depends on how fast the machine is: an event is counted for a
// window only if all times at which it can have happened lie in it. See docs/dev/testing.md.
package storm
