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
	// TrustedProxies are the networks of your proxies, whose x-forwarded-for is
	// read. This and the three fields that follow are as in
	// [latelyhttp.IdentityConfig].
	TrustedProxies []netip.Prefix

	TrustUnix         bool
	Hops              int
	ProxiesAreClients bool

	// Fields adds event fields, such as "user", and replaces those that the
	// package would fill in, by the names that rules use. A function is called
	// only if the rules use its field; "" means that the call does not have it.
	Fields map[string]func(*Call) string

	// Cost returns the cost of a call; nil means 1. Limits neither refuse nor
	// count a call of cost 0.
	Cost func(*Call) uint64

	// Skip reports whether a call passes without being judged, such as a health
	// check.
	Skip func(*Call) bool

	// HideLimits sends no ratelimit metadata.
	HideLimits bool

	// HideNames hides the names and keys of rules from clients, which see
	// "policy-1" for the first rule of the Set, and so on.
	HideNames bool

	// HashKey is the secret key for digests of fields that [ratelimit.SetConfig.Fields]
	// declares as hashed. Processes that share a store need the same key. Zero means the
	// key that the store holds for them; New and Check return the error of a store that does not answer. Without a shared store, zero means
	// a random key for this process, so digests change at each start.
	HashKey [32]byte

	// Observe, if not nil, is called for every judged call, before it is answered
	// or served: for logs, metrics and the decisions of shadow rules.
	Observe func(*Call, Verdict)

	// OnRefused, if not nil, may replace err, the error of a refused call; err is
	// sent if OnRefused returns nil.
	OnRefused func(c *Call, v Verdict, err error) error
}

// A Verdict is the decision about one call, for the functions of [Config].
type Verdict struct {
	// Decision is the decision under all rules of Set.
	Decision ratelimit.Decision

	// Outcomes has the outcome of each matching rule, shadow rules included. It
	// is valid until the function that got the Verdict returns.
	Outcomes []ratelimit.Outcome

	// Set has the rules that the Rule numbers in Outcomes refer to.
	Set *ratelimit.Set
}
