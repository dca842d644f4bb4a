// Package accesslogtest writes access logs that look real and whose contents are
// known: for tests, for benchmarks and for a demo without real clients.
//
// [Write] generates a day of a small shop in Combined Log Format: clients whose
// popularity follows a Zipf law, sessions that load a page and then its files, a night
// and two busy hours, a crawler, and a few dirty lines. Into this it plants what a rate
// limit, a ban and a hot key are for, and returns a [Truth] that lists it: one client
// that repeats POST /login, a crowd of clients that search at the same time, and a
// product that many clients request from one second to the next.
//
// # Determinism
//
// The same [Config] gives the same bytes on every platform: the generator draws
// from a seeded PCG and computes in integers only, because compilers may fuse
// floating-point operations. A change of the bytes is a change of this package
// and is listed in the change log.
//
// # Addresses
//
// Every address is from a range that is reserved for documentation or
// benchmarks: 192.0.2.0/24, 198.51.100.0/24 and 203.0.113.0/24 (RFC 5737),
// 2001:db8::/32 (RFC 3849) and, when there are more clients than these hold,
// 198.18.0.0/15 (RFC 2544). Agents and host names are invented and end in
// .example (RFC 2606).
package accesslogtest
