// Package access says who may do what: roles, the tokens that stand for them, and
// a guard against those who try tokens out. And it says how many may come: the
// bounds of a listener, and the gate that keeps those of connections.
//
//	tokens, err := access.Load("tokens")
//	guard, err := access.NewGuard(access.GuardConfig{})
//	...
//	who, err := guard.Authenticate(tokens, token, peer)
//	if err != nil || !who.Role.May(access.Check) {
//		// refused
//	}
//
// No token is in an error, in a log or in memory for longer than a call: what is
// kept is SHA-256 of each.
package access
