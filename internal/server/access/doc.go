// Package access has the roles of clients and the tokens that stand for them. It also
// bounds what clients can take: [Limits] of a listener, the [ConnLimiter] of its
// connections, and the [Budget] of requests and replies.
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
