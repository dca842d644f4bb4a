// Package latelygrpc limits and bans the calls of a gRPC server with a [ratelimit.Limiter].
// A refused call gets a status with the time after which the client may retry.
//
//	i, err := latelygrpc.New(limiter, latelygrpc.Config{})
//	...
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(i.Unary),
//		grpc.ChainStreamInterceptor(i.Stream),
//	)
//
// # Event fields
//
// A call is an event with these fields. Only fields that the rules use are filled in.
//
//	client   the caller's address, see below
//	method   the full method, /package.Service/Method
//	path     the same, so that a rule on path matches a call and its line in
//	         a proxy's access log
//	object   the same as path
//	pattern  the same as path
//	host     the :authority: lower case, without port and final dot
//	agent    the user-agent
//	referer  the referer
//
// The section fields of a rules file, or [ratelimit.SetConfig.Fields], declares others that
// are in metadata, which it calls headers: see [match.Source]. [Config.Fields] adds fields
// that the program computes, such as an authenticated user. New rejects rules that use
// fields that calls do not have.
//
// # Client identity
//
// The client is the peer of the connection. By default no metadata is trusted. If the
// peer is in [Config.TrustedProxies], x-forwarded-for is read as
// [latelyhttp.Identity] reads it, and the client is the text that
// [latelyhttp.Client.AppendTo] appends. The rule's key then folds the address, by
// default IPv6 to its /64 (see [match.Fold]).
//
// # In-flight limits and queues
//
// A call counts under an in-flight limit until its handler has returned or panicked. A
// call that a leaky bucket queues waits for its turn before the handler runs, but not
// beyond its deadline.
//
// # Messages of a stream
//
// A stream is judged once, at its start. To limit the messages in it, the handler calls a
// limiter for each message that it has received, with a key of its own:
//
//	var messages = ratelimit.PerKey(100, time.Second)
//	...
//	if d := messages.Take(user); !d.Allowed {
//		return status.Error(codes.ResourceExhausted, "too many messages")
//	}
//
// To slow the client down instead, use [ratelimit.RuleLimiter.Wait].
//
// # Refusals
//
//	by a limit or a ban            RESOURCE_EXHAUSTED
//	a field is missing             UNAUTHENTICATED
//	a store that failed closed     UNAVAILABLE
//	a key too long for any store   INVALID_ARGUMENT
//	a turn beyond the deadline     DEADLINE_EXCEEDED, without what follows
//
// The status has an ErrorInfo with one of the reasons of this package, a RetryInfo with
// the time after which a client that does nothing else is allowed (none if waiting
// does not help), and a QuotaFailure that names the rules. The trailer has the same
// time for gRPC's own retries (grpc-retry-pushback-ms of gRPC proposal A6); it
// forbids a retry if the call's deadline is earlier.
//
// The metadata fields ratelimit and ratelimit-policy of
// draft-ietf-httpapi-ratelimit-headers-11 contain the limits. They are in the header
// of an allowed call, and in the trailer of a refused one, since gRPC clients do not
// retry a call that received a header. Under an algorithm that counts in slots, the
// time to wait may be longer than needed, and than w, by [ratelimit.Limit.MaxLate].
package latelygrpc
