package latelygrpc

import (
	"net/netip"

	"github.com/lately-go/lately/ratelimit"
)

// Config configures an [Interceptor]. With the zero value, a client is the peer of its
// connection, and every call costs 1.
//
// The functions are called by the goroutines that serve calls, concurrently.
type Config struct {
	// TrustedProxies are the networks of your proxies: x-forwarded-for of a
	// peer outside them is ignored. An IPv4-mapped prefix is the IPv4 one.
	// Clients in these networks can claim any address. If there are any, set
	// Hops.
	TrustedProxies []netip.Prefix

	// TrustUnix makes peers on a Unix socket trusted proxies. By default all
	// of them are one client, "unix".
	TrustUnix bool

	// Hops is the largest number of proxies between a client and this
	// server: at most so many addresses are read from x-forwarded-for, and the
	// last of them is the client even if it is in TrustedProxies. With 0, the
	// client is the first address that is not of a trusted proxy.
	Hops int

	// ProxiesAreClients says that hosts in TrustedProxies also send calls of
	// their own, without x-forwarded-for: the client is then the proxy's
	// address. By default it is "proxy:" and the address, which matches no
	// allow list.
	ProxiesAreClients bool

	// Fields adds event fields, such as "user", and replaces those that the
	// package would fill in, by the names that rules use. A function is called
	// only if the rules use its field; "" means that the call does not have it.
	Fields map[string]func(*Call) string

	// Cost returns what a call costs; nil is 1 for each. Limits neither refuse
	// nor count a call of cost 0.
	Cost func(*Call) uint64

	// MessageCost returns what each message that a client sends in a stream
	// costs, in addition to the call; nil is 0 for each. A message of cost 0 is
	// not judged. After a refused message, RecvMsg always returns the refusal.
	// Rules can select calls or messages by the field "kind"; an in-flight limit
	// must select calls.
	MessageCost func(c *Call, message any) uint64

	// Skip reports whether a call and its messages pass without being judged,
	// such as a health check.
	Skip func(*Call) bool

	// HideLimits sends no ratelimit metadata.
	HideLimits bool

	// HideNames hides the names and keys of rules from clients, which see
	// "policy-1" for the first rule of the Set, and so on.
	HideNames bool

	// Observe, if not nil, is called for every judged call and message, before
	// it is answered or served: for logs and metrics, and for what shadow rules
	// would have refused.
	Observe func(*Call, Verdict)

	// OnRefused, if not nil, may replace err, the error of a refused call or
	// message, which is sent if OnRefused returns nil.
	OnRefused func(c *Call, v Verdict, err error) error
}

// A Verdict is the outcome of one call, or of one message of a stream.
type Verdict struct {
	// Decision is the decision under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes has the outcome of each matching rule, shadow rules included. It
	// is valid until the function that got the Verdict returns.
	Outcomes []ratelimit.Outcome

	// Set has the rules that the Rule numbers in Outcomes refer to.
	Set *ratelimit.Set
}
