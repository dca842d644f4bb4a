package latelygrpc

import (
	"net/netip"

	"github.com/lately-go/lately/ratelimit"
)

// Config is how an [Interceptor] works. Its zero value is the default: clients
// are told apart by the peers of their connections, every call costs 1.
//
// The functions are called by the goroutine that serves the call, several at
// once for several calls.
type Config struct {
	// TrustedProxies are the networks of one's own proxies: x-forwarded-for
	// of a peer outside them is ignored. An IPv4-mapped prefix is the IPv4
	// one. A network that holds clients too makes these clients proxies;
	// name Hops in that case.
	TrustedProxies []netip.Prefix

	// TrustUnix makes peers on a Unix socket trusted proxies. By default all
	// of them are one client, "unix".
	TrustUnix bool

	// Hops is the largest number of proxies between a client and this
	// server: so many addresses are read from x-forwarded-for, and the last
	// of them is the client even if it is in TrustedProxies. 0 reads on
	// until an address is not of a trusted proxy.
	Hops int

	// ProxiesAreClients says that hosts in TrustedProxies also call for
	// themselves, without x-forwarded-for: the client is then the proxy's
	// address as it stands. By default it is "proxy:" and the address, which
	// no allow list holds.
	ProxiesAreClients bool

	// Fields gives further event fields, by the names that rules have for
	// them, and replaces what the package would fill in: "user", "tenant",
	// "client". A function is called for calls only if the rules look at its
	// field; "" means that the call does not have it.
	Fields map[string]func(*Call) string

	// Cost is what a call costs; nil is 1 for each. 0 only looks: such a
	// call is not refused by limits, and not counted.
	Cost func(*Call) uint64

	// MessageCost is what each message that a client sends in a stream costs
	// on top of the call; nil is 0 for each. A message of cost 0 is not
	// judged. One that is refused ends the reading: RecvMsg returns the
	// refusal then and from then on. The field "kind" tells rules about
	// messages from rules about calls; an in-flight limit has to be about
	// calls.
	MessageCost func(c *Call, message any) uint64

	// Skip, when it says true, lets a call pass unjudged, and the messages
	// of a stream: health checks.
	Skip func(*Call) bool

	// HideLimits sends no ratelimit metadata.
	HideLimits bool

	// HideNames keeps the names of rules, and what they count by, from
	// clients: they see "policy-1" for the first rule of the Set, and so on.
	HideNames bool

	// Observe, when not nil, is told of every judged call and message,
	// before it is answered or handed on: for logs and metrics, and what
	// shadow rules would have refused.
	Observe func(*Call, Verdict)

	// OnRefused, when not nil, may replace the error of a refused call or
	// message. err is what would be sent, and is sent if it returns nil.
	OnRefused func(c *Call, v Verdict, err error) error
}

// A Verdict is what became of one call, or of one message of a stream.
type Verdict struct {
	// Decision is the answer under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes is what each matching rule said, shadow rules included. It is
	// valid until the function that got the Verdict returns.
	Outcomes []ratelimit.Outcome

	// Set is what the Rule numbers in Outcomes refer to.
	Set *ratelimit.Set
}
