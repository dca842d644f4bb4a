package latelyhttp

import (
	"net/http"
	"strconv"

	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A Responder writes the fields and bodies of a [Middleware] with Draft11, for programs
// that judge events themselves. A decision has only the outcome of the deciding rule, so
// there are fields for that rule alone. A Responder has the rules of one Set, does not
// change, and is safe for concurrent use. The zero Responder has no rules.
type Responder struct {
	set      *ratelimit.Set
	policies ratelimitheader.Policies
}

// NewResponder returns the Responder of decisions under set.
func NewResponder(set *ratelimit.Set) *Responder {
	return &Responder{set, ratelimitheader.New(set, false)}
}

// WriteHeaders adds RateLimit-Policy and RateLimit to h if r has the deciding rule of d,
// and Retry-After if d is a refusal that ends.
func (r *Responder) WriteHeaders(h http.Header, d *ratelimit.Decision) {
	if !d.Allowed && d.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(ratelimitheader.Seconds(d.RetryAfter), 10)}
	}
	v := r.verdict(d)
	writeDraft(h, &r.policies, &v, nil)
}

// AppendProblem appends the problem document (RFC 9457) of a refusal and returns it
// with the status that goes with it.
func (r *Responder) AppendProblem(dst []byte, d *ratelimit.Decision) (body []byte, status int) {
	v := r.verdict(d)
	problem := problemOf(d)
	return appendProblem(dst, &r.policies, problem, &v), problem.status
}

// verdict returns d with the outcome of its deciding rule.
func (r *Responder) verdict(d *ratelimit.Decision) Verdict {
	return Verdict{Decision: *d, Set: r.set, Outcomes: r.policies.Deciding(nil, d)}
}
