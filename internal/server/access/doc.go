// Package access decides who may do what: roles, and the tokens that stand for them. It
// also bounds how much clients can take: the bounds of a listener, and the [ConnLimiter] that
// limits its connections.
//
//	tokens, err := access.Load("tokens")
//	...
//	role, name, ok := tokens.Role(token)
//	if !ok || !role.May(access.Check) {
//		// refused
//	}
//
// No token is in an error, in a log, or in memory for longer than a call: only the
// SHA-256 hash of each is kept.
package access
