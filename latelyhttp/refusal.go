package latelyhttp

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A problem is a registered problem type, with the title that goes with it.
type problem struct {
	status      int
	kind, title string
}

// The types are those that draft-ietf-httpapi-ratelimit-headers-11 registers.
const problemTypes = "https://iana.org/assignments/http-problem-types#"

var (
	quotaExceeded   = problem{http.StatusTooManyRequests, problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"}
	abnormalUsage   = problem{http.StatusTooManyRequests, problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"}
	reducedCapacity = problem{http.StatusServiceUnavailable, problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"}
	fieldTooLarge   = problem{http.StatusRequestHeaderFieldsTooLarge, "about:blank", http.StatusText(http.StatusRequestHeaderFieldsTooLarge)}
)

// problemOf returns the problem type of a refusal.
func problemOf(d *ratelimit.Decision) *problem {
	switch {
	case !d.BannedUntil.IsZero():
		return &abnormalUsage
	case !ratelimitheader.StoreFailed(d):
		return &quotaExceeded
	case errors.Is(d.Err, ratelimit.ErrKeyTooLong):
		return &fieldTooLarge
	}
	return &reducedCapacity
}

// refuse answers r, which v refuses.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, p *plan, s *state, v *Verdict) {
	h := w.Header()
	if v.Decision.RetryAfter > 0 {
		wait := ratelimitheader.Seconds(v.Decision.RetryAfter) + rand.Int64N(int64(m.config.Jitter/time.Second)+1)
		h["Retry-After"] = []string{strconv.FormatInt(wait, 10)}
	}
	h["Cache-Control"] = []string{"no-store"}
	if m.config.OnRefused != nil {
		m.config.OnRefused(w, r, *v)
		return
	}
	problem := problemOf(&v.Decision)
	s.Text = appendProblem(s.Text[:0], &p.Policies, problem, v)
	h["Content-Type"] = []string{"application/problem+json"}
	h["Content-Length"] = []string{strconv.Itoa(len(s.Text))}
	w.WriteHeader(problem.status)
	if r.Method != http.MethodHead {
		w.Write(s.Text) // after an error there is nobody to tell
	}
}

// appendProblem appends the body of RFC 9457.
func appendProblem(buf []byte, p *ratelimitheader.Policies, problem *problem, v *Verdict) []byte {
	buf = append(buf, `{"type":"`...)
	buf = append(buf, problem.kind...)
	buf = append(buf, `","title":"`...)
	buf = append(buf, problem.title...)
	buf = append(buf, `","status":`...)
	buf = strconv.AppendInt(buf, int64(problem.status), 10)
	if problem != &fieldTooLarge {
		buf = append(buf, `,"violated-policies":[`...)
		buf = appendViolated(buf, p, v)
		buf = append(buf, ']')
	}
	return append(buf, "}\n"...)
}

// appendViolated appends the names of the policies that refused the event.
func appendViolated(buf []byte, p *ratelimitheader.Policies, v *Verdict) []byte {
	start := len(buf)
	for _, violation := range p.Violated(v.Outcomes, &v.Decision) {
		if len(buf) > start {
			buf = append(buf, ", "...)
		}
		buf = append(buf, violation.JSON...)
	}
	if len(buf) == start { // the store failed, and its rule is closed
		if r := p.Named(v.Decision.Rule); r != nil {
			buf = append(buf, r.JSON...)
		}
	}
	return buf
}
