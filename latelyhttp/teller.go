package latelyhttp

import (
	"net/http"
	"strconv"

	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A Teller tells clients of decisions that a program has made by itself, in the
// fields and bodies that a [Middleware] with Draft11 sends. It knows of a decision
// only what the deciding rule said, so it tells of that rule alone. It is about the
// rules of one Set, does not change, and is safe for concurrent use. Make one with
// [NewTeller]; the zero Teller knows no rule and tells of none.
type Teller struct {
	plan plan
}

// NewTeller returns the Teller of decisions under set.
func NewTeller(set *ratelimit.Set) *Teller {
	return &Teller{plan{set: set, policies: ratelimitheader.New(set, false)}}
}

// Set returns the rules that t knows.
func (t *Teller) Set() *ratelimit.Set { return t.plan.set }

// WriteHeaders adds RateLimit-Policy and RateLimit to h, and Retry-After for a
// refusal that ends. A decision under no rule, or one that t does not know, adds
// none of the first two.
func (t *Teller) WriteHeaders(h http.Header, d *ratelimit.Decision) {
	if !d.Allowed && d.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(ratelimitheader.Seconds(d.RetryAfter), 10)}
	}
	v := t.verdict(d)
	t.plan.writeDraft(h, &v, nil)
}

// AppendProblem appends the problem document (RFC 9457) of a refusal and returns it
// with the status that goes with it.
func (t *Teller) AppendProblem(dst []byte, d *ratelimit.Decision) (body []byte, status int) {
	v := t.verdict(d)
	problem := problemOf(d)
	return t.plan.appendProblem(dst, problem, &v), problem.status
}

// verdict returns what is known of d.
func (t *Teller) verdict(d *ratelimit.Decision) Verdict {
	return Verdict{Decision: *d, Set: t.plan.set, Outcomes: t.plan.policies.Deciding(nil, d)}
}
