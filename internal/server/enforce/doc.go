// Package enforce has other programs refuse what a server has banned: the kernel through
// nftables, a proxy through a file of addresses, and others through requests.
//
// The server passes its bans to an [Enforcer], as all that hold and then as changes. The
// Enforcer keeps the networks that must be refused, as a state with versions. Each target
// follows that state at its own pace: it is brought from the version that it has to the
// newest one, and set as a whole when it fails or when somebody else has changed it. So a
// change that is lost is made up for, and a slow target delays no other.
//
// Only networks of clients are enforced, and none that would lock out the operator; see
// [Enforcer.Add].
package enforce
