// Package keyed measures a count or a limit for each of very many keys: what an
// event costs when the keys are Zipf distributed and when they are uniform, what
// a key weighs, what an insertion costs and how long the garbage collector works
// on it all. The rows are floors, maps, peers that can be had as modules, and
// ours.
//
// The caller's key is built in a small buffer, as it is after a request has been
// parsed, and is in the cache. Peers that keep the string they are given, or
// rewrite their key with it, cannot be called like that; see retention.
//
// Not here: mennanov/limiters, which brings the clients of five clouds and
// databases along; webriots/rate and clipperhouse/rate, which the public module
// proxy did not serve when this was written.
package keyed
