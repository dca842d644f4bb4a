package latelygrpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/ratelimit"
)

// The contents of the ErrorInfo of a refused call. Its metadata has the deciding rule
// as "rule" and the end of a ban as "banned_until", in RFC 3339.
const (
	// ErrorDomain is the domain of the reasons below.
	ErrorDomain = "github.com/lately-go/lately"

	// ReasonLimited is the reason of a call that a limit refused.
	ReasonLimited = "RATE_LIMIT_EXCEEDED"

	// ReasonBanned is the reason of a call that a ban refused.
	ReasonBanned = "BANNED"

	// ReasonStore is the reason of a call that was refused because the store
	// failed, under a rule with FailClosed.
	ReasonStore = "STORE_UNAVAILABLE"

	// ReasonMissing is the reason of a call that lacks a field of a rule's key, if the
	// [match.Source] of the field has Refuse. The metadata of the ErrorInfo names the field as
	// "missing".
	ReasonMissing = "FIELD_MISSING"

	// ReasonKey is the reason of a call with a key that is too long for a store.
	ReasonKey = "KEY_TOO_LONG"
)

// refusal returns the error of a call that v refuses.
func (i *Interceptor) refusal(c *Call, p *plan, v *Verdict) error {
	err := i.status(p, v).Err()
	if i.config.OnRefused != nil {
		if other := i.config.OnRefused(c, *v, err); other != nil {
			return other
		}
	}
	return err
}

// status returns the status of a call that v refuses.
func (i *Interceptor) status(p *plan, v *Verdict) *status.Status {
	d := &v.Decision
	rule := ""
	if r := p.Policies.Named(d.Rule); r != nil {
		rule = r.Name
	}
	reason, code, message := explain(d, rule)
	if d.Missing != "" {
		reason, code, message = ReasonMissing, codes.Unauthenticated, middleware.MissingText(p.Set, d.Missing)
	}
	info := &errdetails.ErrorInfo{Reason: reason, Domain: ErrorDomain, Metadata: map[string]string{}}
	if rule != "" {
		info.Metadata["rule"] = rule
	}
	if reason == ReasonMissing {
		info.Metadata["missing"] = d.Missing
	}
	if reason == ReasonBanned {
		info.Metadata["banned_until"] = d.BannedUntil.UTC().Format(time.RFC3339Nano)
	}
	details := []protoadapt.MessageV1{info}
	if 0 < d.RetryAfter && d.RetryAfter < ratelimit.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	if code == codes.ResourceExhausted {
		details = append(details, i.quotaFailure(p, v))
	}
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil { // unreachable: the details can be marshalled
		return status.New(code, message)
	}
	return s
}

// explain returns why d refuses. A refusal by a limit has a RetryAfter, which may be
// Never.
func explain(d *ratelimit.Decision, rule string) (reason string, code codes.Code, message string) {
	by := ""
	if rule != "" {
		by = fmt.Sprintf(" by %q", rule)
	}
	switch {
	case !d.BannedUntil.IsZero():
		until := d.BannedUntil.UTC().Add(time.Second - 1).Truncate(time.Second)
		return ReasonBanned, codes.ResourceExhausted, fmt.Sprintf("banned%s until %s", by, until.Format(time.RFC3339))
	case d.RetryAfter == ratelimit.Never:
		return ReasonLimited, codes.ResourceExhausted, fmt.Sprintf("refused%s: it is more than the whole limit, waiting does not help", by)
	case d.RetryAfter > 0:
		return ReasonLimited, codes.ResourceExhausted, fmt.Sprintf("refused%s: too many calls, try again in %v", by, roundUp(d.RetryAfter))
	case errors.Is(d.Err, ratelimit.ErrKeyTooLong):
		return ReasonKey, codes.InvalidArgument, "refused: what the call is counted by is too long"
	}
	return ReasonStore, codes.Unavailable, fmt.Sprintf("refused%s: the limits cannot be checked at the moment", by)
}

// quotaFailure names the policies that refused, in the order of the rules.
func (i *Interceptor) quotaFailure(p *plan, v *Verdict) *errdetails.QuotaFailure {
	q := new(errdetails.QuotaFailure)
	for o, by := range p.Policies.Violated(v.Outcomes, &v.Decision) {
		violation := &errdetails.QuotaFailure_Violation{QuotaId: by.Name, Description: "banned"}
		if !i.config.HideNames {
			violation.Subject = p.Set.Rules()[o.Rule].Key.String()
		}
		if !by.Ban {
			violation.QuotaValue = int64(min(by.Quota, math.MaxInt64))
			violation.Description = fmt.Sprintf("the limit is %d", by.Quota)
		}
		q.Violations = append(q.Violations, violation)
	}
	return q
}

// pushbackField has the wait before a retry of gRPC itself: see gRPC proposal A6.
const pushbackField = "grpc-retry-pushback-ms"

// pushback returns the wait in milliseconds. It is negative, which means not to retry,
// if waiting does not help or would take longer than the call's deadline.
func pushback(ctx context.Context, wait time.Duration) int64 {
	const noRetry = -1
	if wait <= 0 || wait == ratelimit.Never {
		return noRetry
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return noRetry
	}
	ms := roundUp(wait).Milliseconds()
	if ms > math.MaxInt32 { // the most that clients read
		return noRetry
	}
	return ms
}

// roundUp returns d rounded up to milliseconds.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
