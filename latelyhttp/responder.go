package latelyhttp

import (
	"net/http"
	"strconv"

	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A Responder tells clients of decisions that a program has made by itself, in the
// fields and bodies that a [Middleware] with Draft11 sends. It knows of a decision
// only what the deciding rule said, so it tells of that rule alone. It is about the
// rules of one Set, does not change, and is safe for concurrent use. Make one with
// [NewResponder]; the zero Responder knows no rule and tells of none.
type Responder struct {
	plan plan
}

// NewResponder returns the Responder of decisions under set.
func NewResponder(set *ratelimit.Set) *Responder {
	return &Responder{plan{set: set, policies: ratelimitheader.New(set, false)}}
}

// Set returns the rules that t knows.
func (r *Responder) Set() *ratelimit.Set { return r.plan.set }

// WriteHeaders adds RateLimit-Policy and RateLimit to h, and Retry-After for a
// refusal that ends. A decision under no rule, or one that t does not know, adds
// none of the first two.
func (r *Responder) WriteHeaders(h http.Header, d *ratelimit.Decision) {
	if !d.Allowed && d.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(ratelimitheader.Seconds(d.RetryAfter), 10)}
	}
	v := r.verdict(d)
	r.plan.writeDraft(h, &v, nil)
}

// AppendProblem appends the problem document (RFC 9457) of a refusal and returns it
// with the status that goes with it.
func (r *Responder) AppendProblem(dst []byte, d *ratelimit.Decision) (body []byte, status int) {
	v := r.verdict(d)
	problem := problemOf(d)
	return r.plan.appendProblem(dst, problem, &v), problem.status
}

// verdict returns what is known of d.
func (r *Responder) verdict(d *ratelimit.Decision) Verdict {
	return Verdict{Decision: *d, Set: r.plan.set, Outcomes: r.plan.policies.Deciding(nil, d)}
}
